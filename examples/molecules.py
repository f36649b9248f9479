"""Molecules: which atoms make a GNN say that a molecule holds a nitro group?

Writes a table of SMILES with and without nitro groups, trains a GNN on them, explains the molecules that it finds one
in, and writes a report in which they are drawn as molecules. Needs rdkit: pip install "gflowexplainer[molecules]".

    python examples/molecules.py --out runs/molecules
"""

from __future__ import annotations

import argparse
import csv
import itertools
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GIN, global_add_pool

from gflowexplainer import GFlowExplainer
from gflowexplainer.report import Report, write_report
from gflowexplainer.sources import read_molecules

ATOMS = ("C", "N", "O", "Cl", "S")
NITRO = "[N+](=O)[O-]"
GROUPS = (NITRO, "N", "O", "OC", "C(=O)O", "C(=O)N", "Cl", "SC", "C#N", "CCN")
CORES = ("c1ccc({})cc1{}", "C1CC({})CCC1{}", "c1cc({})sc1{}", "C({})CC(C)C{}", "c1ccc2c({})cccc2c1{}")


class Classifier(nn.Module):
    """A GIN that sums its nodes: class 1 for molecules with a nitro group."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = GIN(len(ATOMS), hidden_channels=32, num_layers=3)
        self.readout = nn.Linear(32, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns raw scores, shape ``[G, 2]``."""
        return self.readout(global_add_pool(self.layers(x, edge_index), batch))


def write_table(path: Path) -> None:
    """Writes every core with every pair of groups, one SMILES a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["smiles"])
        for core, (one, other) in itertools.product(CORES, itertools.combinations_with_replacement(GROUPS, 2)):
            table.writerow([core.format(one, other)])


def train(graphs: list[Data], steps: int) -> Classifier:
    """Trains the classifier on all molecules; a real one would keep some apart."""
    torch.manual_seed(0)
    model, batch = Classifier(), Batch.from_data_list(graphs)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    """Reads, trains, fits, explains, reports."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=Path, default=Path("runs/molecules"), help="folder for what is written")
    arguments.add_argument(
        "--fast", action="store_true", help="little of everything: shows that it runs, not what it can do"
    )
    options = arguments.parse_args()
    torch.set_num_threads(1)

    write_table(options.out / "molecules.csv")
    graphs = read_molecules(options.out / "molecules.csv", atoms=ATOMS)
    for graph in graphs:
        graph.y = torch.tensor([int(NITRO in graph.smiles)])
    model = train(graphs, steps=20 if options.fast else 200)
    batch = Batch.from_data_list(graphs)
    predicted = model(batch.x, batch.edge_index, batch.batch).argmax(dim=1)
    print(f"{len(graphs)} molecules; the model is right about {(predicted == batch.y).float().mean():.0%} of them")

    # A nitro group has three atoms, and one more ties it to the rest. Both classes are fitted to: what a class lacks
    # says as much about the model as what another has.
    algorithm = GFlowExplainer(max_nodes=4, seed=0)
    algorithm.fit(model, graphs, index=range(0, len(graphs), 40 if options.fast else 5))
    found = torch.nonzero(predicted == predicted.max()).flatten().tolist()[: 3 if options.fast else 12]
    explanations = algorithm.explain(model, graphs, index=found)

    cases = []
    for place, explanation in zip(found, explanations, strict=True):
        case = explanation.case(f"{place}: {graphs[place].smiles}", classes=("none", "nitro group"))
        print(f"{case.name}: {' '.join(map(case.node_name, explanation.parts.nodes))}")
        cases.append(case)
    settings = algorithm.settings.to_dict()
    print("Report:", write_report(Report("Nitro groups", cases, settings=settings), options.out / "report.html"))


if __name__ == "__main__":
    main()
