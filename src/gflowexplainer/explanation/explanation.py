"""An explanation: a distribution over connected subgraphs, as PyG explanation, table and file."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.explain import Explanation, ModelConfig

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.explanation.certificate import Certificate
from gflowexplainer.explanation.pictures import Picture, draw, svg
from gflowexplainer.explanation.ranked_subgraphs import RankedSubgraph, SubgraphDistribution, shown
from gflowexplainer.explanation.studies import Studied, Studies
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.model.predictor import read_output
from gflowexplainer.ops.sparse_rows import Fields, SparseRows, pack_fields, unpack_fields
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

KIND = "explanation"


class SubgraphExplanation(Studied, Explanation):
    """A PyG explanation that holds a distribution over connected subgraphs.

    ``node_mask`` ``[N, 1]`` and ``edge_mask`` ``[E]`` are the probabilities that a node, or both ends of an edge, lie
    in a subgraph that is sampled. Everything that PyG does with an explanation works: ``validate``, ``threshold``,
    ``get_explanation_subgraph``, ``visualize_graph`` and the metrics.
    """

    @classmethod
    def of(cls, distribution: SubgraphDistribution, **fields: Any) -> SubgraphExplanation:
        """Makes an explanation; ``fields`` are masks and inputs, as PyG's ``Explanation`` takes them."""
        explanation = cls(**fields)
        explanation._store._mapping = Fields(explanation._store._mapping)
        explanation._distribution = distribution
        return explanation

    @property
    def _known(self) -> SubgraphDistribution:
        distribution = self._store.__dict__.get("_distribution")
        if distribution is None:
            raise ConfigError("This explanation is empty. Explanations are made by GFlowExplainer.")
        return distribution

    @property
    def subgraphs(self) -> list[RankedSubgraph]:
        """The different subgraphs that were sampled, most probable first."""
        return list(self._known.subgraphs)

    def top(self, k: int = 5) -> list[RankedSubgraph]:
        """Returns the ``k`` most probable subgraphs, or as many as there are."""
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise ConfigError(f"'k' must be a whole number of at least 1 (got {k!r}).")
        return list(self._known.subgraphs[:k])

    @property
    def explained_node(self) -> int | None:
        """The node whose prediction is explained; ``None`` at graph level."""
        return self._known.node

    @property
    def effective_sample_size(self) -> float:
        """How many independent samples of the target the samples are worth.

        It is as large as the number of samples where the flow network samples from its target, and small where most
        of the target's weight falls on few of the samples. It only knows what was sampled: a network that never visits
        the best subgraphs can have a large one. The certificate sees that.
        """
        return self._known.effective_sample_size

    @property
    def certificate(self) -> Certificate:
        """The exact distance to the target distribution, or why it was not computed; computed when first asked for."""
        return self._known.certificate.get()

    @property
    def known_certificate(self) -> Certificate:
        """The certificate if it has been asked for before, else one that says that it has not; computes nothing."""
        return self._known.certificate.known

    @property
    def weighting(self) -> str:
        """``"policy"``: a probability is how often a subgraph was sampled; ``"reward"``: re-weighted by reward."""
        return self._known.weighting

    @property
    def num_samples(self) -> int:
        """How many subgraphs were sampled."""
        return self._known.num_samples

    @property
    def whole_prediction(self) -> tuple[float, ...] | None:
        """What the model predicts on the whole graph: class probabilities, or values for regression.

        ``None`` where the explanation does not hold the model's output or does not know how to read it.
        """
        config = self._store.__dict__.get("_model_config")
        if "prediction" not in self or config is None:
            return None
        row = self._row("prediction")
        row = row.reshape(1, -1).detach().double()
        return tuple(read_output(row, config.mode.value, config.return_type.value)[0].tolist())

    @property
    def explained_class(self) -> int | None:
        """The class whose probability the subgraphs hold; ``None`` for regression or where it is not known."""
        if "target" not in self:
            return None
        row = self._row("target")
        return None if row.is_floating_point() else int(row)

    @property
    def left_out(self) -> int:
        """Nodes that were left out as the computation graph has more than ``max_graph_nodes``; 0 if it has not.

        Only those that were seen are counted: what lies behind them was not looked at.
        """
        return self._known.left_out

    @property
    def prediction_kept(self) -> tuple[float, ...] | None:
        """What the model predicts where the nodes that were :attr:`left_out` are missing; ``None`` if none were."""
        return self._known.prediction_kept

    @property
    def bound_note(self) -> str:
        """Says in words what was :attr:`left_out`; empty if nothing was."""
        return self._known.bound_note()

    def _row(self, name: str) -> Tensor:
        """Picks the row of the explained node or graph."""
        value, node = self._fields()[name], self._known.node
        if isinstance(value, SparseRows):
            return value.row(0 if node is None else node)
        return value[0 if value.size(0) == 1 or node is None else node]

    def _fields(self) -> dict[str, Any]:
        """Returns all fields without writing out those that are known at a few rows."""
        fields = self._store._mapping
        return fields.raw() if isinstance(fields, Fields) else fields

    def node_probability(self) -> np.ndarray:
        """Returns the probability that each node lies in a sampled subgraph, shape ``[N]``."""
        return self._node_values()

    def edge_probability(self, nodes: Iterable[int]) -> dict[tuple[int, int], float]:
        """Returns the probability that both ends are inside, for each pair of joined ``nodes``, smaller id first."""
        return self._edge_values(nodes)

    def _apply_masks(self, node_mask: Tensor | None = None, edge_mask: Tensor | None = None) -> Explanation:
        """Cuts the graph, as PyG does. Nodes get new ids, so the subgraphs do not come along."""
        cut = super()._apply_masks(node_mask, edge_mask)
        plain = Explanation(**dict(cut.items()))
        for name in ("_model_config", "_model_args"):
            if name in self._store.__dict__:
                setattr(plain, name, self._store.__dict__[name])
        return plain

    # What is shown: masks where there are any, so that a thresholded explanation is shown thresholded.

    def _node_values(self) -> np.ndarray:
        if "node_mask" in self and "_features_shown" not in self._store.__dict__:
            return self.node_mask.sum(dim=1).double().cpu().numpy()
        values = np.zeros(self._num_nodes())
        for subgraph in self._known.subgraphs:
            values[list(subgraph.nodes)] += subgraph.probability
        return values

    def _num_nodes(self) -> int:
        number = self.num_nodes
        return max((max(s.nodes) for s in self._known.subgraphs), default=-1) + 1 if number is None else number

    def _ends(self) -> np.ndarray:
        if "edge_index" not in self:
            raise ConfigError("This explanation does not know its graph. Set 'explanation.edge_index'.")
        return self.edge_index.cpu().numpy()

    def _edge_values(self, nodes: Iterable[int]) -> dict[tuple[int, int], float]:
        """Returns the probability that both ends are inside, for each pair of joined ``nodes``, smaller id first."""
        ends, inside = self._ends(), np.zeros(self._num_nodes(), dtype=bool)
        inside[list(nodes)] = True
        kept = np.flatnonzero(inside[ends[0]] & inside[ends[1]] & (ends[0] != ends[1]))
        pairs = [(min(u, v), max(u, v)) for u, v in ends[:, kept].T.tolist()]
        values = dict.fromkeys(pairs, 0.0)
        if "edge_mask" in self:
            for pair, value in zip(pairs, self.edge_mask.cpu().numpy()[kept].tolist(), strict=True):
                values[pair] = max(values[pair], value)
            return values
        for subgraph in self._known.subgraphs:
            for pair in combinations(sorted(subgraph.nodes), 2):
                if pair in values:
                    values[pair] += subgraph.probability
        return values

    def to_networkx(self, *, everything: bool = False) -> networkx.Graph:
        """Returns an undirected graph of the nodes that have any probability, or of ``everything``.

        Nodes and edges carry ``probability``, the explained node ``explained=True``.
        """
        try:
            import networkx
        except ImportError as error:
            raise ConfigError("'to_networkx' needs networkx. Install it with 'pip install networkx'.") from error
        values = self._node_values()
        graph = networkx.Graph()
        for node, value in enumerate(values.tolist()):
            if everything or value > 0:
                graph.add_node(node, probability=value, explained=node == self._known.node)
        for (u, v), value in self._edge_values(graph).items():
            graph.add_edge(u, v, probability=value)
        return graph

    def _shown_nodes(self, limit: int) -> list[int]:
        """Picks the nodes to draw: the most probable, then those around them."""
        values = self._node_values()
        order = np.argsort(-values, kind="stable")
        chosen = order[values[order] > 0][:limit]
        if chosen.size == 0:  # a threshold has left nothing
            chosen = np.array(self._known.subgraphs[0].nodes[:limit])
        source, target = self._ends()
        seen = np.zeros(values.size, dtype=bool)
        seen[chosen] = True
        while chosen.size < limit:
            reached = np.unique(np.concatenate([target[seen[source]], source[seen[target]]]))
            fresh = reached[~seen[reached]][: limit - chosen.size]
            if fresh.size == 0:
                break
            seen[fresh] = True
            chosen = np.concatenate([chosen, fresh])
        return chosen.tolist()

    def draw(self, path: str | Path | None = None, *, max_nodes: int = 40, ax: Axes | None = None) -> Axes:
        """Draws the explanation on the graph around it, coloured by probability; the explained node has a ring.

        Args:
            path: Where to save the picture; the ending chooses the format. Without one, it is left to pyplot.
            max_nodes: Nodes drawn at most: the most probable, then the nearest.
            ax: Axes to draw on.
        """
        return draw(self._picture(max_nodes), path, ax)

    def _picture(self, max_nodes: int) -> Picture:
        """Gathers what there is to draw: the most probable nodes, then the nearest."""
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        nodes = self._shown_nodes(max_nodes)
        slot = {node: i for i, node in enumerate(nodes)}
        inside = [(slot[u], slot[v], p) for (u, v), p in self._edge_values(nodes).items()]
        ring = slot.get(-1 if self._known.node is None else self._known.node)
        return Picture(nodes, self._node_values()[nodes], sorted(inside, key=lambda e: e[2]), ring, self._title())

    def _title(self) -> str:
        what = "graph" if self._known.node is None else f"node {self._known.node}"
        best = self._known.subgraphs[0]
        return f"{what}: most probable subgraph of {len(best)} nodes, probability {best.probability:.2f}"

    def _repr_html_(self) -> str:
        """Shows a small picture and the most probable subgraphs in a notebook."""
        if self._store.__dict__.get("_distribution") is None:
            return f"<pre>{escape(repr(self))}</pre>"
        rows = "".join(
            f"<tr><td>{escape(', '.join(map(str, s.nodes)))}</td><td>{s.probability:.3f}</td><td>{s.reward:.3f}</td>"
            f"<td>{escape(shown(s.prediction_only))}</td><td>{escape(shown(s.prediction_without))}</td></tr>"
            for s in self.top(5)
        )
        heads = ("nodes", "probability", "reward", "with only it", "without it")
        known = self._known
        note = (
            f"{len(known.subgraphs)} different subgraphs in {known.num_samples} samples, "
            f"weighted by {known.weighting}; effective sample size {known.effective_sample_size:.1f}"
        )
        note = "; ".join(filter(None, (note, known.bound_note())))
        head = "".join(f"<th>{name}</th>" for name in heads)
        picture = svg(self._picture(30)) if "edge_index" in self else ""
        return (
            f"<div><p><b>{escape(self._title())}</b></p>{picture}"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{escape(note)}</p></div>"
        )

    def save(self, path: str | Path) -> None:
        """Stores the explanation in one safetensors file with JSON in its header.

        A certificate that has not been asked for is not computed for this; ask for it first to keep it.
        """
        plain: dict[str, Any] = {}
        tensors, sparse = pack_fields(self._fields())
        for name, value in self._fields().items():
            if name in sparse:
                continue
            if isinstance(value, Tensor):
                # Cloned: two fields may share memory, as prediction and target of a regression do.
                tensors[name] = value.detach().clone()
            elif isinstance(value, int | float | str | bool | None):
                plain[name] = value
            else:
                raise CheckpointError(
                    f"The field '{name}' of the explanation is a {type(value).__name__}, which cannot be stored. "
                    f"Remove it first: del explanation.{name}."
                )
        config = self._store.__dict__.get("_model_config")
        meta = {
            "kind": KIND,
            "distribution": self._known.to_dict(),
            "fields": plain,
            "sparse": sparse,
            "model_config": None if config is None else config_to_dict(config),
            "model_args": self._store.__dict__.get("_model_args"),
            "studies": self.studies.to_dict(),
            "features_shown": "_features_shown" in self._store.__dict__,
        }
        write_checkpoint(Path(path), {"fields": tensors}, meta)

    @classmethod
    def load(cls, path: str | Path, device: torch.device | str = "cpu") -> SubgraphExplanation:
        """Reads what :meth:`save` stored, onto ``device``."""
        sections, meta = read_checkpoint(Path(path), device)
        if meta.get("kind") != KIND:
            raise CheckpointError(f"'{path}' holds no explanation (but {meta.get('kind') or 'a training'}).")
        try:
            explanation = cls.of(
                SubgraphDistribution.from_dict(meta["distribution"]),
                **unpack_fields(sections.get("fields", {}), meta.get("sparse", {})),
                **meta["fields"],
            )
            if meta["model_config"] is not None:
                explanation._model_config = ModelConfig(**meta["model_config"])
            if meta["model_args"] is not None:
                explanation._model_args = meta["model_args"]
            explanation._studies = Studies.from_dict(meta.get("studies", {}))
            if meta.get("features_shown"):
                explanation._features_shown = True
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"'{path}' holds an explanation of another version ({error}).") from error
        return explanation
