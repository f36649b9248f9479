"""UserItemAttr, the published task of PaGE-Link: links of a typed graph, explained by known paths."""

from __future__ import annotations

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import k_hop_subgraph

from gflowbench.datasets.reference import read_reference, reference_folder
from gflowbench.typed.link_task import EdgeType, LinkTask, TypedEdge
from gflowexplainer.errors import DatasetError

LIKES: EdgeType = ("user", "likes", "item")
NUM_HOPS = 2


class MeanConvolution(MessagePassing):
    """The mean of a linear map of the senders; the mean of none is 0."""

    def __init__(self, width: int) -> None:
        super().__init__(aggr="mean")
        self.lin = nn.Linear(width, width)

    def forward(self, x: tuple[Tensor, Tensor], edge_index: Tensor) -> Tensor:
        """Returns what arrives at the receivers, shape ``[N_target, width]``."""
        return self.propagate(edge_index, x=(self.lin(x[0]), x[1]), size=(x[0].size(0), x[1].size(0)))

    def message(self, x_j: Tensor) -> Tensor:
        """Sends what the senders hold."""
        return x_j


class UserItemGnn(nn.Module):
    """The published GNN: two layers over four relations, links scored by a dot product."""

    def __init__(self, edge_types: list[EdgeType], width: int = 64) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(NUM_HOPS))
        self.layers = nn.ModuleList(
            nn.ModuleDict({"__".join(key): MeanConvolution(width) for key in edge_types}) for _ in range(NUM_HOPS)
        )

    def forward(
        self, x_dict: dict[str, Tensor], edge_index_dict: dict[EdgeType, Tensor], edge_label_index: Tensor
    ) -> Tensor:
        """Returns raw scores of (user, item) pairs ``[2, L]``, shape ``[L]``."""
        hidden = x_dict
        for number, (own, layer) in enumerate(zip(self.own, self.layers, strict=True)):
            new = {key: own(x) for key, x in hidden.items()}
            for key, edges in edge_index_dict.items():
                arrives = layer.get_submodule("__".join(key))((hidden[key[0]], hidden[key[2]]), edges)
                new[key[2]] = new[key[2]] + arrives
            last = number == NUM_HOPS - 1
            hidden = new if last else {key: functional.leaky_relu(x, 0.01) for key, x in new.items()}
        return (hidden["user"][edge_label_index[0]] * hidden["item"][edge_label_index[1]]).sum(dim=1)


def load_user_item_attr(num_train: int = 64) -> LinkTask:
    """Reads the published data and weights; the links are the test links that the GNN predicts.

    Args:
        num_train: Predicted training links that explainers may be fitted to, at most.
    """
    content = read_reference("user_item_attr.npz", "It is part of PaGE-Link's repository.")
    folder = reference_folder()
    path = None if folder is None else folder / "weights" / "gnn_user_item_attr.safetensors"
    if path is None or not path.is_file():
        raise DatasetError("The published GNN of user-item-attr was not found beside its data.")
    weights = load_file(str(path))
    edge_types: list[EdgeType] = [tuple(name.split("__")) for name in content["relations"].tolist()]
    graph = HeteroData()
    for node_type in ("attr", "item", "user"):
        graph[node_type].x = weights[f"encoder.emb.embeds.{node_type}.weight"]
    for key in edge_types:
        graph[key].edge_index = torch.from_numpy(content[f"edge__{'__'.join(key)}"]).long()
    model = UserItemGnn(edge_types)
    model.load_state_dict(_renamed(weights, edge_types))
    pairs, split = torch.from_numpy(content["pairs"]).long(), torch.from_numpy(content["split"])
    predicted = torch.from_numpy(content["probability"]) > 0.5
    train, test = (torch.nonzero((split == part) & predicted).flatten() for part in (0, 2))
    number = {
        (relation, *ends): (key, place)
        for relation, key in enumerate(edge_types)
        for place, ends in enumerate(graph[key].edge_index.t().tolist())
    }
    paths = []
    for pair in test.tolist():
        first, last = content["pair_path_ptr"][pair : pair + 2]
        edges = [content["path_edges"][slice(*content["path_ptr"][j : j + 2])] for j in range(first, last)]
        paths.append([[number[tuple(edge)] for edge in path.tolist()] for path in edges])
    test_pairs = pairs[:, test]
    around = computation_edges(graph, test_pairs, LIKES, NUM_HOPS)
    return LinkTask(graph, model.eval(), LIKES, pairs[:, train[:num_train]], test_pairs, paths, around)


def _renamed(weights: dict[str, Tensor], edge_types: list[EdgeType]) -> dict[str, Tensor]:
    """Brings the published names of weights to ours."""
    found = {}
    for layer in range(NUM_HOPS):
        for kind in ("weight", "bias"):
            found[f"own.{layer}.{kind}"] = weights[f"encoder.layer{layer + 1}.weight0.{kind}"]
            for key in edge_types:
                published = weights[f"encoder.layer{layer + 1}.weight.{key[1]}.{kind}"]
                found[f"layers.{layer}.{'__'.join(key)}.lin.{kind}"] = published
    return found


def computation_edges(graph: HeteroData, pairs: Tensor, edge_type: EdgeType, num_hops: int) -> list[list[TypedEdge]]:
    """Lists the edges between nodes within some hops, along incoming edges, of either end of each link."""
    flat = graph.to_homogeneous(node_attrs=[], edge_attrs=[])
    first = {key: int((flat.node_type < number).sum()) for number, key in enumerate(graph.node_types)}
    edge_first = {key: int((flat.edge_type < number).sum()) for number, key in enumerate(graph.edge_types)}
    found = []
    for one, other in pairs.t().tolist():
        ends = [first[edge_type[0]] + one, first[edge_type[2]] + other]
        mask = k_hop_subgraph(ends, num_hops, flat.edge_index, num_nodes=flat.num_nodes)[3]
        places = torch.nonzero(mask).flatten()
        keys = [graph.edge_types[number] for number in flat.edge_type[places].tolist()]
        found.append([(key, place - edge_first[key]) for key, place in zip(keys, places.tolist(), strict=True)])
    return found
