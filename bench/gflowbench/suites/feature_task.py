"""A task in which two of twenty features decide, and only inside a motif: which features count is known."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import to_undirected

from gflowexplainer import GFlowExplainer

NUM_FEATURES = 20
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
_ARMS = 6


class StarGNN(nn.Module):
    """One GIN layer, a sum over nodes and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        inner = nn.Sequential(nn.Linear(NUM_FEATURES + 1, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.first, self.readout = GINConv(inner), nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Returns logits ``[G, 2]``; a constant feature lets the layer count neighbours."""
        counted = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
        return self.readout(global_add_pool(self.first(counted, edge_index), batch))


def make_graph(generator: torch.Generator, features: tuple[int, int], label: int) -> Data:
    """Makes a path with a star at its end, all features 0 or 1 by chance.

    Class 1: every node of the star has both features. Class 0: one of them, or none. Along the path both are as random
    as the others.
    """
    length = int(torch.randint(4, 9, (1,), generator=generator))
    edges = [(i, i + 1) for i in range(length)] + [(length, length + 1 + i) for i in range(_ARMS)]
    x = torch.randint(0, 2, (length + 1 + _ARMS, NUM_FEATURES), generator=generator).float()
    has = (1, 1) if label else ((1, 0), (0, 1), (0, 0))[int(torch.randint(0, 3, (1,), generator=generator))]
    x[length:, list(features)] = torch.tensor(has).float()
    return Data(x=x, edge_index=to_undirected(torch.tensor(edges).t()), y=torch.tensor([label]))


def measure_task(seed: int, *, num_graphs: int = 2000, epochs: int = 40, number: int = 10) -> dict[str, float]:
    """Trains a GNN on the task and counts how often the two features that decide come first.

    Args:
        seed: Seed of data, features and GNN.
        num_graphs: Graphs to train on.
        epochs: Epochs of the training.
        number: Further graphs to explain.
    """
    generator = torch.Generator().manual_seed(seed)
    one, two = torch.randperm(NUM_FEATURES, generator=generator)[:2].tolist()
    graphs = [make_graph(generator, (one, two), place % 2) for place in range(num_graphs)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = StarGNN()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
        batches = [Batch.from_data_list(graphs[begin : begin + 250]) for begin in range(0, num_graphs, 250)]
        for _ in range(epochs):
            for place in torch.randperm(len(batches)).tolist():
                batch = batches[place]
                loss = nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    model.eval()
    fresh = [make_graph(generator, (one, two), place % 2) for place in range(5 * number)]
    batch = Batch.from_data_list(fresh)
    with torch.no_grad():
        right = model(batch.x, batch.edge_index, batch.batch).argmax(dim=1) == batch.y
    chosen = [graph for graph, sure in zip(fresh, right.tolist(), strict=True) if sure and graph.y][:number]
    explainer = GFlowExplainer(seed=seed).fit(model, chosen, model_config=CONFIG, progress=False)
    explanations = explainer.explain(model, chosen, model_config=CONFIG, progress=False)
    columns = torch.tensor([e.feature_contributions(reference=0.0).columns for e in explanations])
    both = [set(row.abs().topk(2).indices.tolist()) == {one, two} for row in columns]
    overall = set(columns.abs().mean(dim=0).topk(2).indices.tolist()) == {one, two}
    return {
        "accuracy": float(right.double().mean()),
        "both first, each explanation": sum(both) / len(both),
        "both first, mean over explanations": float(overall),
    }
