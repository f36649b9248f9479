"""An explanation of a heterogeneous graph: a distribution over connected subgraphs across types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import HeteroExplanation

from gflowexplainer.drawing.case import Case
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.ranked import Names
from gflowexplainer.explanation.shown import ShownExplanation
from gflowexplainer.ops.sparse_rows import Fields


class TypedExplanation(ShownExplanation, HeteroExplanation):
    """A PyG explanation of a heterogeneous graph that holds a distribution over connected subgraphs.

    ``node_mask_dict`` and ``edge_mask_dict`` are the probabilities that a node ``[N_t, 1]``, or both ends of an edge
    ``[E_r]``, lie in a subgraph that is sampled. Nodes are named by type and id, as ``("paper", 3)``. Everything that
    PyG does with a ``HeteroExplanation`` works.
    """

    KIND = "typed explanation"

    @classmethod
    def of(cls, distribution: SubgraphDistribution, by_type: Mapping[Any, Mapping[str, Any]]) -> TypedExplanation:
        """Makes an explanation of masks and inputs by node type or relation, and of the whole under ``None``."""
        explanation = cls()
        for key, values in by_type.items():
            store = explanation._global_store if key is None else explanation[key]
            store._mapping = Fields(values)
        explanation._distribution = distribution
        return explanation

    @property
    def _names(self) -> Names:
        nodes = {key: int(self[key].num_nodes or 0) for key in self.node_types}
        return Names(nodes, {key: self[key].edge_index.size(1) for key in self.edge_types if "edge_index" in self[key]})

    def _named(self, answer: Any) -> Any:
        if isinstance(answer, tuple):
            return tuple(map(self._named, answer))
        if isinstance(answer, int):
            return self._names.node(answer)
        return answer.renamed(self._names) if hasattr(answer, "renamed") else answer

    def drop(self, names: Iterable[str]) -> None:
        """Removes masks that nobody asked for."""
        for name in names:
            for store in self.stores:
                store._mapping.pop(name, None)

    def _apply_masks(self, node_mask_dict: dict[str, Tensor], edge_mask_dict: dict[Any, Tensor]) -> HeteroExplanation:
        """Cuts the graph, as PyG does. Nodes get new ids, so the subgraphs do not come along."""
        cut = super()._apply_masks(node_mask_dict, edge_mask_dict)
        plain = HeteroExplanation()
        for store in cut.stores:
            own = plain._global_store if store._key is None else plain[store._key]
            own._mapping.update(store._mapping)
        if "_model_config" in self._own:
            plain._model_config = self._own["_model_config"]
        return plain

    def _knows_its_graph(self) -> bool:
        return all("edge_index" in self[key] for key in self.edge_types)

    def flat(self) -> SubgraphExplanation:
        """Returns the same explanation of the graph in which the nodes of all types stand behind each other."""
        counts = self._names.nodes
        first = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
        fields = dict(self._global_store._mapping) | {"num_nodes": sum(counts.values())}
        shifts = [torch.tensor([[first[source]], [first[target]]]) for source, _, target in self.edge_types]
        edges = [self[key].edge_index.cpu() + shift for key, shift in zip(self.edge_types, shifts, strict=True)]
        fields["edge_index"] = torch.cat(edges, dim=1)
        for name, keys in (
            ("node_mask", self.node_types),
            ("node_contributions", self.node_types),
            ("edge_mask", self.edge_types),
        ):
            masks = [self[key][name].cpu() for key in keys if name in self[key]]
            if len(masks) == len(keys):
                fields[name] = torch.cat([m.sum(dim=1, keepdim=True) if m.dim() > 1 else m for m in masks])
        flat = SubgraphExplanation.of(self._known, **fields)
        flat._names = self._names
        flat._types = [key for key, count in counts.items() for _ in range(count)]
        flat._relations = [key[1] for key in self.edge_types for _ in range(self[key].edge_index.size(1))]
        if "_model_config" in self._own:
            flat._model_config = self._own["_model_config"]
        return flat

    def case(self, name: str | None = None, **words: Any) -> Case:
        """Returns what drawings and reports show: types by shape and colour, relations on the edges, links as two ends.

        Args:
            name: What to call it; unique in a report.
            **words: ``labels`` (lists of texts by node type), ``classes`` and ``note``, as in
                :class:`~gflowexplainer.report.Case`.
        """
        odd = sorted(set(words) - {"labels", "classes", "note"})
        if odd:
            raise ConfigError(f"'{odd[0]}' is not shown of typed graphs. Pass 'labels', 'classes' or 'note'.")
        counts, flat = self._names.nodes, self.flat()
        given = words.pop("labels", self.words_of_data.get("labels"))
        ids = [str(node) for count in counts.values() for node in range(count)]
        labels = ids if given is None else _labels(given, counts)
        texts = zip(flat._types, ids, labels, strict=True)
        return Case(
            self.name if name is None else name,
            flat,
            labels=labels,
            types=flat._types,
            names=[f"{key} {node}" if text == node else f"{text} ({key} {node})" for key, node, text in texts],
            relations=flat._relations,
            **words,
        )


def _labels(given: Any, counts: Mapping[str, int]) -> list[str]:
    """Puts texts of nodes, by type, behind each other; types that have none show the ids."""
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"'labels' of a typed graph is a dictionary of lists by node type (got {type(given).__name__})."
        )
    found: list[str] = []
    for key, count in counts.items():
        own = given.get(key, range(count))
        if len(own) != count:
            raise ConfigError(f"'labels' of {key!r} has {len(own)} entries for {count} nodes. Pass one each.")
        found += map(str, own)
    return found
