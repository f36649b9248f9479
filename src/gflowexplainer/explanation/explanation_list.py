"""The explanations of one call: a list whose entries are built when they are looked at, or one pair of masks."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import reduce
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, overload

import torch
from torch import Tensor

from gflowexplainer.drawing.case import words_of_data
from gflowexplainer.drawing.page import View
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation import SubgraphExplanation
from gflowexplainer.explanation.masked import MaskedExplanation
from gflowexplainer.explanation.words import one_line
from gflowexplainer.ops.sparse_rows import MatrixEntries

if TYPE_CHECKING:
    import pandas

MOST_LINES = 10
"""Explanations that a list prints."""


class ExplanationBatch(Protocol):
    """Some explanations that were computed together, as flat tensors."""

    def __len__(self) -> int: ...

    def build(self, position: int) -> SubgraphExplanation:
        """Makes the explanation at a position."""
        ...

    def mask(self, kind: str) -> MatrixEntries:
        """Returns ``"node"`` or ``"edge"`` masks."""
        ...


class ExplanationList(Sequence[SubgraphExplanation]):
    """Explanations in the order of ``index``. Indexing, slicing, iterating and ``len`` work as with a list.

    An explanation is built when it is first looked at, and kept. Nothing is computed for those that nobody looks at.

    Args:
        batches: Explanations that were computed together, one batch behind the other.
        order: Positions among all of them; all if not given.
        data: What the user passed, for the names of nodes and features in it.
    """

    def __init__(
        self, batches: Sequence[ExplanationBatch], order: Sequence[int] | None = None, data: Any = None
    ) -> None:
        self._data = data
        self._batches = list(batches)
        self._first = [0, *accumulate(len(batch) for batch in self._batches)]
        self._order: Sequence[int] = range(self._first[-1]) if order is None else order
        self._built: dict[int, SubgraphExplanation] = {}

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> SubgraphExplanation: ...

    @overload
    def __getitem__(self, index: slice) -> ExplanationList: ...

    def __getitem__(self, index: int | slice) -> SubgraphExplanation | ExplanationList:
        if isinstance(index, slice):
            part = ExplanationList(self._batches, self._order[index], self._data)
            part._built = self._built
            return part
        position = self._order[index]
        if position not in self._built:
            number = bisect_right(self._first, position) - 1
            built = self._batches[number].build(position - self._first[number])
            built._words = words_of_data(self._data, built.explained_graph)
            self._built[position] = built
        return self._built[position]

    def __iter__(self) -> Iterator[SubgraphExplanation]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} of {len(self)} explanation{'' if len(self) == 1 else 's'}"]
        lines += [f"  {number}: {one_line(self[number])}" for number in range(min(len(self), MOST_LINES))]
        return "\n".join(lines + (["  ..."] if len(self) > MOST_LINES else []))

    def show(self, most: int = 20, **words: Any) -> View:
        """Returns the drawing that a notebook shows: the first explanations, to choose from.

        Args:
            most: Explanations that are shown at most.
            **words: What is known of the graphs, as in :class:`~gflowexplainer.report.Case`. ``smiles`` and ``words``
                differ from graph to graph, so they are lists with one entry an explanation; everything else is the
                same for all.
        """
        own = {name: words.pop(name) for name in ("smiles", "words") if name in words}
        for name, values in own.items():
            if isinstance(values, str) or len(values) != len(self):
                raise ConfigError(f"'{name}' has {len(values)} entries for {len(self)} explanations. Pass one each.")
        shown = [self[number] for number in range(min(len(self), most))]
        cases = [
            explanation.case(_unique(explanation, number), **words, **{n: v[number] for n, v in own.items()})
            for number, explanation in enumerate(shown)
        ]
        return View(cases)

    def _repr_html_(self) -> str:
        """Shows the first explanations in a notebook."""
        if len(self) == 0:
            return f"<pre>{escape(repr(self))}</pre>"
        return self.show()._repr_html_()

    @property
    def node_mask(self) -> Tensor:
        """Probability of each node in each explanation, sparse, shape ``[I, N]`` with the largest ``N``."""
        return self._mask("node")

    @property
    def edge_mask(self) -> Tensor:
        """Probability of each edge in each explanation, sparse, shape ``[I, E]`` with the largest ``E``."""
        return self._mask("edge")

    def largest(self, kind: str) -> Tensor:
        """Returns the largest probability of each node, or edge, over all explanations, shape ``[N]`` or ``[E]``."""
        mask = self._mask(kind)
        found = mask.values().new_zeros(mask.size(1))
        return found.scatter_reduce_(0, mask.indices()[1], mask.values(), "amax")

    def _mask(self, kind: str) -> Tensor:
        blocks = [batch.mask(kind) for batch in self._batches]
        rows = _joined([b.row + first if first else b.row for b, first in zip(blocks, self._first, strict=False)])
        entries = torch.stack([rows, _joined([block.column for block in blocks])])
        shape = (self._first[-1], max(block.size for block in blocks))
        values, in_order = _joined([block.value for block in blocks]), all(block.in_order for block in blocks)
        whole = torch.sparse_coo_tensor(entries, values, shape, check_invariants=False, is_coalesced=in_order)
        if isinstance(self._order, range) and self._order == range(self._first[-1]):
            return whole if in_order else whole.coalesce()
        return whole.index_select(0, torch.tensor(list(self._order), device=rows.device)).coalesce()

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns one row an explanation: what is explained, and its most probable subgraph."""
        try:
            import pandas
        except ImportError as error:
            raise ConfigError("'to_dataframe' needs pandas. Install it with 'pip install pandas'.") from error
        return pandas.DataFrame([_row(explanation) for explanation in self])


class JointExplanation(MaskedExplanation):
    """A PyG explanation of several nodes, or graphs of a batch.

    ``node_mask`` ``[N, 1]`` and ``edge_mask`` ``[E]`` hold the largest probability over the explained instances. What
    each of them says by itself is in :attr:`explanations`.
    """

    @classmethod
    def of(cls, explanations: ExplanationList) -> JointExplanation:
        """Makes one of explanations in the same graph, or in graphs of the same batch."""
        first = explanations[0]
        node, edge = explanations.largest("node"), explanations.largest("edge")
        joint = cls(x=first.x, edge_index=first.edge_index, node_mask=node[:, None], edge_mask=edge)
        joint._explanations = explanations
        return joint

    @property
    def explanations(self) -> ExplanationList:
        """The explanation of each, in the order of ``index``."""
        found = vars(self._store).get("_explanations")
        if found is None:
            raise ConfigError("This explanation is empty. Joint explanations are made by GFlowExplainer.")
        return found

    def best(self) -> JointExplanation:
        """Returns the first subgraphs of all of them as hard masks."""
        hard, each = copy.copy(self), [explanation.best() for explanation in self.explanations]
        hard.node_mask = reduce(torch.maximum, [one.node_mask for one in each])
        hard.edge_mask = reduce(torch.maximum, [one.edge_mask for one in each])
        hard._thresholded = True
        return hard

    def __repr__(self) -> str:
        found = vars(self._store).get("_explanations")
        return super().__repr__() if found is None else f"{type(self).__name__}: {found!r}"

    def _repr_html_(self) -> str:
        """Shows all of them in a notebook."""
        return self.explanations._repr_html_()


def _joined(parts: list[Tensor]) -> Tensor:
    """Puts tensors behind each other; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _unique(explanation: SubgraphExplanation, number: int) -> str:
    """Returns a name of its own for an explanation of a list."""
    return f"graph {number}" if explanation.name == "graph" else f"{number}: {explanation.name}"


def _explained(explanation: SubgraphExplanation) -> dict[str, Any]:
    """Says what is explained, under its kind: a link, a graph among several, or a node."""
    if explanation.explained_link is not None:
        return {"link": explanation.explained_link}
    if explanation.explained_graph is not None:
        return {"graph": explanation.explained_graph}
    return {"node": explanation.explained_node}


def _row(explanation: SubgraphExplanation) -> dict[str, Any]:
    first = explanation.subgraphs[0]
    return {
        **_explained(explanation),
        "class": explanation.explained_class,
        "nodes": first.nodes,
        "size": len(first),
        "probability": first.probability,
        "reward": first.reward,
        "num_subgraphs": len(explanation.subgraphs),
        "error": explanation.error,
    }
