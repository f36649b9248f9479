"""A graph task: which motif makes a GNN choose the class of a graph?

Generates graphs with a house or a five-cycle in them, trains a GIN to tell which, explains some of both classes, and
writes a report in which the ground truth is drawn too.

    python examples/graphs.py --out runs/graphs
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.datasets.motif_generator import CycleMotif, HouseMotif
from torch_geometric.nn import GIN, global_mean_pool

from gflowexplainer import GFlowExplainer
from gflowexplainer.report import Case, Report, write_report

CLASSES = ("cycle", "house")


def make_graphs(number: int) -> list[Data]:
    """Hangs one motif onto each of so many random trees; ``edge_mask`` marks its edges."""
    torch.manual_seed(0)
    graphs = []
    for label, motif in enumerate((CycleMotif(5), HouseMotif())):
        for one in ExplainerDataset(BAGraph(20, 1), motif, num_motifs=1, num_graphs=number // 2):
            x = torch.ones(one.num_nodes, 10)
            graphs.append(Data(x=x, edge_index=one.edge_index, y=torch.tensor([label]), edge_mask=one.edge_mask))
    return graphs


class Classifier(nn.Module):
    """A GIN that averages its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = GIN(10, hidden_channels=32, num_layers=3)
        self.readout = nn.Linear(32, len(CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns raw scores, shape ``[G, 2]``."""
        return self.readout(global_mean_pool(self.layers(x, edge_index), batch))


def train(graphs: list[Data], steps: int) -> Classifier:
    """Trains the classifier on all graphs; a real one would keep some apart."""
    model, batch = Classifier(), Batch.from_data_list(graphs)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    """Trains, fits, explains, reports."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--out", type=Path, default=Path("runs/graphs"), help="folder for everything that is written"
    )
    arguments.add_argument(
        "--fast", action="store_true", help="little of everything: shows that it runs, not what it can do"
    )
    options = arguments.parse_args()
    torch.set_num_threads(1)

    graphs = make_graphs(30 if options.fast else 120)
    model = train(graphs, steps=20 if options.fast else 200)
    batch = Batch.from_data_list(graphs)
    right = (model(batch.x, batch.edge_index, batch.batch).argmax(dim=1) == batch.y).float().mean()
    print(f"{len(graphs)} graphs; the model is right about {right:.0%} of them")

    algorithm = GFlowExplainer(seed=0)
    algorithm.fit(model, graphs, index=range(0, len(graphs), 4))
    unseen = range(1, len(graphs), 6 if options.fast else 12)
    explanations = algorithm.explain(model, graphs, index=unseen)

    cases = []
    for place, explanation in zip(unseen, explanations, strict=True):
        truth = graphs[place].edge_mask.bool()
        cases.append(Case(f"graph {place}", explanation, truth=truth, classes=CLASSES))
        on_motif = graphs[place].edge_index[:, truth].unique().tolist()
        nodes = explanation.parts.nodes
        print(f"graph {place}: {nodes}, {len(set(nodes) & set(on_motif))} of {len(on_motif)} nodes of the motif")
    settings = algorithm.settings.to_dict()
    print("Report:", write_report(Report("House or cycle?", cases, settings=settings), options.out / "report.html"))


if __name__ == "__main__":
    main()
