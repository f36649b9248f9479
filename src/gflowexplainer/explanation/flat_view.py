"""A typed explanation as one of the flat graph that it was found in: what drawings and reports show of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch

from gflowexplainer.drawing.case import Case
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.parts import Parts
from gflowexplainer.explanation.ranked_subgraphs import RankedPath, RankedSubgraph, SubgraphDistribution


class FlatView:
    """Nodes of all types behind each other, and edges of all relations.

    Args:
        explanation: The :class:`~gflowexplainer.TypedExplanation`, which shows itself by this and so stands above it.
    """

    def __init__(self, explanation: Any) -> None:
        self.explanation = explanation
        self.counts = {key: int(explanation[key].num_nodes or 0) for key in explanation.node_types}
        self.first = dict(zip(self.counts, accumulate(self.counts.values(), initial=0), strict=False))

    def node(self, name: Any) -> int:
        """Returns where a node, named by type and id, stands among all."""
        return self.first[name[0]] + int(name[1])

    def subgraph_explanation(self) -> SubgraphExplanation:
        """Returns the same explanation with the ids of the flat graph."""
        typed = self.explanation
        known, fields = typed._known, dict(typed._global_store._mapping)
        edges, mask = [], []
        for key in typed.edge_types:
            shift = torch.tensor([[self.first[key[0]]], [self.first[key[2]]]])
            edges.append(typed[key].edge_index.cpu() + shift)
            if "edge_mask" in typed[key]:
                mask.append(typed[key].edge_mask.cpu())
        fields["edge_index"] = torch.cat(edges, dim=1)
        if len(mask) == len(edges):
            fields["edge_mask"] = torch.cat(mask)
        masks = [typed[key].node_mask.cpu() for key in typed.node_types if "node_mask" in typed[key]]
        if len(masks) == len(self.counts):
            fields["node_mask"] = torch.cat([part.sum(dim=1, keepdim=True) for part in masks])
        fields["num_nodes"] = sum(self.counts.values())
        flat = SubgraphExplanation.of(self._distribution(known), **fields)
        if "_model_config" in typed._own:
            flat._model_config = typed._own["_model_config"]
        return flat

    def _distribution(self, known: SubgraphDistribution) -> SubgraphDistribution:
        node = None if known.node is None else self.node((known.node_type, known.node))
        link = None if known.link is None else (self.node(known.link[0]), self.node(known.link[1]))

        def rank() -> list[RankedSubgraph]:
            return [replace(one, nodes=tuple(map(self.node, one.nodes))) for one in known.subgraphs]

        def paths(most: int) -> list[RankedPath]:
            return [replace(path, nodes=tuple(map(self.node, path.nodes))) for path in known.find_paths(most)]

        def parts() -> Parts:
            one = known.parts
            return replace(one, parts=tuple(replace(p, nodes=tuple(map(self.node, p.nodes))) for p in one.parts))

        find = None if known.find_parts is None else parts
        return replace(known, rank=rank, find_paths=paths, find_parts=find, node=node, link=link, node_type=None)

    def texts(self, given: Any, name: str) -> list[str] | None:
        """Puts texts of nodes, by type, behind each other; types that have none show the ids."""
        if given is None:
            return None
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"'{name}' of a typed graph is a dictionary of lists by node type (got {type(given).__name__})."
            )
        found: list[str] = []
        for key, count in self.counts.items():
            own: Sequence[Any] = given.get(key, range(count))
            if len(own) != count:
                raise ConfigError(f"'{name}' of {key!r} has {len(own)} entries for {count} nodes. Pass one each.")
            found += map(str, own)
        return found

    def case(self, name: str, **words: Any) -> Case:
        """Returns what a drawing shows: types as shapes, relations as labels of edges.

        Args:
            name: What to call it.
            **words: ``labels`` by node type, ``classes`` and ``note``, as in :class:`~gflowexplainer.report.Case`.
        """
        odd = sorted(set(words) - {"labels", "classes", "note"})
        if odd:
            raise ConfigError(f"'{odd[0]}' is not shown of typed graphs. Pass 'labels', 'classes' or 'note'.")
        typed = self.explanation
        labels = self.texts(words.pop("labels", None), "labels")
        ids = [str(i) for count in self.counts.values() for i in range(count)]
        types = [key for key, count in self.counts.items() for _ in range(count)]
        relations = [key[1] for key in typed.edge_types for _ in range(typed[key].edge_index.size(1))]
        names = [
            f"{kind} {i}" if labels is None or labels[place] == i else f"{labels[place]} ({kind} {i})"
            for place, (kind, i) in enumerate(zip(types, ids, strict=True))
        ]
        return Case(
            name,
            self.subgraph_explanation(),
            labels=ids if labels is None else labels,
            types=types,
            names=names,
            relations=relations,
            **words,
        )
