"""A benchmark: graphs, the instances to explain in them, what decides their labels, and where the graphs come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets.motif_truth import complete_ground_truth, role_in_motif
from gflowbench.datasets.task_truth import Combination, TaskTruth
from gflowexplainer.errors import DatasetError, one_of


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A dataset with or without ground-truth explanations: one graph for node tasks, many for graph tasks.

    Each graph has ``x`` (float32, ``[N, F]``), ``edge_index`` (int64, ``[2, E]``) and ``y``. With a ground
    truth it also has ``edge_motif`` (bool, ``[E]``: every motif edge, in both directions) and ``motif_id``
    (int64, ``[N]``: number of the motif a node belongs to, -1 outside all motifs). Node tasks carry
    ``train_mask``, ``val_mask`` and ``test_mask`` (bool, ``[N]``) on their graph.

    Attributes:
        name: Name of the dataset, such as ``"tree-cycles"``.
        task: ``"node"`` or ``"graph"``.
        graphs: The graphs; exactly one for a node task.
        index: What the protocol evaluates, shape ``[I]``: node ids, or positions in ``graphs``.
        num_classes: Number of classes of ``y``.
        source: ``"generated"``, ``"published"``, ``"downloaded"`` or ``"user"``.
        provenance: A sentence: seed and sizes, or file and checksum; for text, which edges and vectors.
        motif_size: Number of nodes of one motif where it is fixed, the ``k`` of the accuracy metric.
        splits: Node ids or positions of graphs of ``train``, ``val`` and ``test``; empty where masks on the graph of a
            node task say it.
        mode: What is predicted, as PyG calls it: ``"multiclass_classification"`` or ``"regression"``.
        truths: What decides each instance, where it is not on the graphs; kept apart, so that no explainer sees it.
        num_layers: Message-passing steps that a GNN needs for it; ``None`` where GNNs come with their own.
        hidden_channels: Width that a GNN needs for it.
    """

    name: str
    task: str
    graphs: list[Data]
    index: Tensor
    num_classes: int
    source: str
    provenance: str
    motif_size: int | None = None
    splits: dict[str, Tensor] = field(default_factory=dict)
    mode: str = "multiclass_classification"
    truths: dict[int, TaskTruth] = field(default_factory=dict)
    num_layers: int | None = None
    hidden_channels: int = 32

    @property
    def is_regression(self) -> bool:
        """Whether values are predicted, not classes."""
        return self.mode == "regression"

    def labels(self, instances: Tensor | None = None) -> Tensor:
        """Returns the class or value of each of ``I`` instances, shape ``[I]``; of all nodes or graphs by default."""
        if self.task == "node":
            return self.graphs[0].y if instances is None else self.graphs[0].y[instances]
        graphs = self.graphs if instances is None else [self.graphs[i] for i in instances.tolist()]
        return torch.cat([graph.y.view(-1) for graph in graphs])

    def instances(self, combinations: Sequence[Combination] | None = None) -> list[int]:
        """Returns the instances of :attr:`index` whose truth is known, in order.

        Args:
            combinations: Only those whose truth combines like this; by default all that have something to find.
        """
        wanted = set(Combination) - {Combination.NONE} if combinations is None else set(combinations)
        return [i for i in self.index.tolist() if i in self.truths and self.truths[i].combination in wanted]

    def select(self, instances: Sequence[int]) -> Benchmark:
        """Returns the benchmark of some instances, in their order; graphs are numbered anew."""
        if self.task == "node":
            return replace(self, index=torch.tensor(instances))
        truths = {place: self.truths[i] for place, i in enumerate(instances) if i in self.truths}
        graphs = [self.graphs[i] for i in instances]
        return replace(self, graphs=graphs, index=torch.arange(len(graphs)), truths=truths, splits={})

    @property
    def data(self) -> Data:
        """The single graph of a node task."""
        if self.task != "node":
            raise DatasetError(
                f"'{self.name}' has {len(self.graphs)} graphs, no single one. Use 'graphs' for a graph task."
            )
        return self.graphs[0]

    @property
    def has_ground_truth(self) -> bool:
        """Whether every graph says which of its edges are motif edges."""
        return all("edge_motif" in graph for graph in self.graphs)

    def motif_nodes(self, role: int | None = None, position: int = 0) -> Tensor:
        """Returns the nodes that lie in a motif, in ascending order.

        Args:
            role: Only the nodes at this place of their motif, counted by node id; all of them if ``None``.
                The role 0 is the one that is attached to the base in generated and published graphs.
            position: Position of the graph in ``graphs``.

        Returns:
            Node ids, shape ``[M]``.
        """
        graph = self.graphs[position]
        if "motif_id" not in graph:
            raise DatasetError(
                f"Graph {position} of '{self.name}' has no ground truth, so no motif nodes. "
                "Give its motifs as 'motif_id' or 'edge_motif'."
            )
        wanted = graph.motif_id >= 0 if role is None else role_in_motif(graph.motif_id) == role
        return wanted.nonzero().view(-1)

    @classmethod
    def from_graphs(
        cls,
        graphs: Data | Sequence[Data],
        *,
        name: str = "user",
        task: str | None = None,
        index: Tensor | Sequence[int] | None = None,
        num_classes: int | None = None,
        motif_size: int | None = None,
        splits: Mapping[str, Tensor | Sequence[int]] | None = None,
        provenance: str = "graphs handed over by the user",
    ) -> Benchmark:
        """Makes a benchmark of a user's own graphs, checked, and copied where something had to be added.

        A ground truth is optional. Either of ``edge_motif`` and ``motif_id`` is enough: motif numbers follow
        from connected components of the motif edges, motif edges from both ends lying in one motif. An edge
        that is marked in one direction counts in both.

        Args:
            graphs: One graph or several. Features may have any real type.
            name: What to call the benchmark in tables.
            task: ``"node"`` or ``"graph"``; if ``None``, a single graph with one label a node is a node task.
            index: Node ids or graph positions to evaluate; if ``None``, the motif nodes or the graphs that
                have a ground truth, and everything where there is none.
            num_classes: Needed only where there are no labels ``y``.
            motif_size: Number of nodes of one motif, where it is fixed.
            splits: Graph tasks: positions of the ``train``, ``val`` and ``test`` graphs.
            provenance: A sentence that says where the graphs come from.

        Example:
            >>> house = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.zeros(3))
            >>> Benchmark.from_graphs(house).index.tolist()
            [0, 1, 2]
        """
        given = [graphs] if isinstance(graphs, Data) else list(graphs)
        if not given:
            raise DatasetError("'graphs' is empty. Pass at least one torch_geometric Data object.")
        for position, graph in enumerate(given):
            _check_graph(graph, position, given[0])
        if task is None:
            labels = given[0].get("y")
            node_like = labels is not None and labels.numel() == given[0].num_nodes
            task = "node" if len(given) == 1 and node_like else "graph"
        one_of("task", task, ("node", "graph"))
        if task == "node" and len(given) != 1:
            raise DatasetError(f"A node task has exactly one graph (got {len(given)}). Pass task='graph'.")
        checked = [_complete(graph, task, position) for position, graph in enumerate(given)]
        count = int(checked[0].num_nodes or 0) if task == "node" else len(checked)
        return cls(
            name=name,
            task=task,
            graphs=checked,
            index=_check_ids("index", _default_index(checked, task) if index is None else index, count, task),
            num_classes=_count_classes(checked) if num_classes is None else num_classes,
            source="user",
            provenance=provenance,
            motif_size=motif_size,
            splits={key: _check_ids(f"splits[{key!r}]", ids, count, task) for key, ids in (splits or {}).items()},
        )


def _check_graph(graph: object, position: int, first: Data) -> None:
    """Refuses what is not a graph with features and edges that fit each other."""
    where = f"Graph {position}"
    if not isinstance(graph, Data):
        raise DatasetError(f"{where} is a {type(graph).__name__}, not a torch_geometric Data object.")
    for key in ("x", "edge_index"):
        if not isinstance(graph.get(key), Tensor):
            raise DatasetError(f"{where} has no tensor '{key}'. Give features 'x' [N, F] and 'edge_index' [2, E].")
    if graph.x.dim() != 2 or graph.x.is_complex():
        raise DatasetError(f"{where}: 'x' must be real with shape [N, F] (got {list(graph.x.shape)}).")
    if graph.x.size(1) != first.x.size(1):
        raise DatasetError(f"{where} has {graph.x.size(1)} features, graph 0 has {first.x.size(1)}. All need the same.")
    edges = graph.edge_index
    if edges.dim() != 2 or edges.size(0) != 2 or edges.dtype != torch.int64:
        raise DatasetError(
            f"{where}: 'edge_index' must be int64 with shape [2, E] (got {edges.dtype}, {list(edges.shape)})."
        )
    nodes = graph.x.size(0)
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        raise DatasetError(
            f"{where}: 'edge_index' names nodes {int(edges.min())} to {int(edges.max())}, "
            f"but there are {nodes} rows in 'x'. Use ids in [0, {nodes})."
        )
    for key, length in (("edge_motif", edges.size(1)), ("motif_id", nodes)):
        value = graph.get(key)
        if value is not None and (not isinstance(value, Tensor) or value.shape != (length,)):
            got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise DatasetError(f"{where}: '{key}' must be a tensor of shape [{length}] (got {got}).")


def _complete(graph: Data, task: str, position: int) -> Data:
    """Returns a shallow copy with float32 features, int64 labels and both halves of the ground truth."""
    graph = graph.clone("x")
    graph.x = graph.x.float()
    if "y" in graph:
        labels = torch.as_tensor(graph.y).view(-1)
        expected = graph.x.size(0) if task == "node" else 1
        if labels.numel() != expected:
            raise DatasetError(
                f"Graph {position}: a {task} task needs {expected} label(s) in 'y' (got {labels.numel()})."
            )
        graph.y = labels.long()
    return complete_ground_truth(graph)


def _default_index(graphs: list[Data], task: str) -> Tensor:
    """Everything that has a ground truth, or everything where nothing has one."""
    if task == "node":
        motif_id = graphs[0].get("motif_id")
        marked = None if motif_id is None else (motif_id >= 0).nonzero().view(-1)
        everything = torch.arange(graphs[0].num_nodes)
    else:
        marked = torch.tensor([i for i, graph in enumerate(graphs) if "edge_motif" in graph and graph.edge_motif.any()])
        everything = torch.arange(len(graphs))
    return everything if marked is None or not marked.numel() else marked


def _check_ids(name: str, ids: Tensor | Sequence[int], count: int, task: str) -> Tensor:
    """Returns ``ids`` as int64 if all lie in ``[0, count)``."""
    checked = torch.as_tensor(ids).view(-1)
    if checked.dtype == torch.bool or (checked.is_floating_point() and checked.numel()):
        raise DatasetError(f"'{name}' must hold integers (got {checked.dtype}).")
    if checked.numel() and not 0 <= int(checked.min()) <= int(checked.max()) < count:
        what = "nodes" if task == "node" else "graphs"
        raise DatasetError(
            f"'{name}' names {int(checked.min())} to {int(checked.max())}, but there are {count} {what}. "
            f"Pass ids in [0, {count})."
        )
    return checked.long()


def _count_classes(graphs: list[Data]) -> int:
    """One more than the largest label."""
    labels = [graph.y for graph in graphs if "y" in graph]
    if len(labels) < len(graphs):
        raise DatasetError(
            f"{len(graphs) - len(labels)} graph(s) have no labels 'y', so classes cannot be counted. "
            "Pass 'num_classes'."
        )
    return int(torch.cat(labels).max()) + 1
