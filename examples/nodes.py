"""A node task: which part of the graph makes a GNN say that a node lies on a cycle?

Generates a tree with cycles of six nodes hung onto it, trains a GIN to find the nodes of the cycles, fits the explainer
to some of them, and explains others that it has not seen.

    python examples/nodes.py --out runs/nodes
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import TreeGraph
from torch_geometric.datasets.motif_generator import CycleMotif
from torch_geometric.explain import Explainer
from torch_geometric.nn import GIN

from gflowexplainer import GFlowExplainer


def make_graph(motifs: int) -> Data:
    """Hangs cycles onto a binary tree; class 1 are nodes on cycles. Nodes have no features of their own."""
    torch.manual_seed(0)
    data = ExplainerDataset(TreeGraph(depth=7), CycleMotif(6), num_motifs=motifs)[0]
    return Data(x=torch.ones(data.num_nodes, 10), edge_index=data.edge_index, y=data.node_mask.long())


def train(data: Data, steps: int) -> GIN:
    """Trains a GNN of three layers; a real one would be held against nodes that it was not trained on."""
    torch.manual_seed(0)
    model = GIN(data.num_features, hidden_channels=32, num_layers=3, out_channels=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y).backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    """Trains, fits, explains, draws."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=Path, default=Path("runs/nodes"), help="folder for everything that is written")
    arguments.add_argument(
        "--fast", action="store_true", help="little of everything: shows that it runs, not what it can do"
    )
    options = arguments.parse_args()
    torch.set_num_threads(1)  # the tensors are small; more threads wait for one another

    data = make_graph(motifs=20 if options.fast else 40)
    model = train(data, steps=20 if options.fast else 300)
    right = (model(data.x, data.edge_index).argmax(dim=1) == data.y).float().mean()
    print(f"{data.num_nodes} nodes; the model is right about {right:.0%} of them")

    cycle_nodes = torch.nonzero(data.y == 1).flatten()
    known, unseen = cycle_nodes[::2], cycle_nodes[1::2]
    algorithm = GFlowExplainer(seed=0)
    explainer = Explainer(
        model,
        algorithm,
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    algorithm.fit(model, data, index=known[:6] if options.fast else known, folder=options.out / "explainer")

    # As any explainer of PyG: one call, one explanation.
    explanation = explainer(data.x, data.edge_index, index=int(unseen[len(unseen) // 2]))
    explanation.draw(options.out / "explanation.png", max_nodes=18)
    print(explanation)

    # Many at once.
    for found in algorithm.explain(model, data, index=unseen[:5]):
        nodes = found.parts.nodes
        on_cycles = sum(int(data.y[node]) for node in nodes)
        print(f"node {found.explained_node}: {nodes}, {on_cycles} of {len(nodes)} nodes lie on cycles")
    print(f"Picture: {options.out / 'explanation.png'}")


if __name__ == "__main__":
    main()
