"""The explanations of one call: a list whose entries are built when they are looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, overload

import torch
from torch import Tensor

from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explanation import SubgraphExplanation

if TYPE_CHECKING:
    import pandas


class ExplanationBatch(Protocol):
    """Some explanations that were computed together, as flat tensors."""

    def __len__(self) -> int: ...

    def build(self, position: int) -> SubgraphExplanation:
        """Makes the explanation at a position."""
        ...

    def mask(self, kind: str) -> tuple[Tensor, Tensor, Tensor, int]:
        """Returns ``"node"`` or ``"edge"`` masks: row, column and value of each entry, and the number of columns."""
        ...


class ExplanationList(Sequence[SubgraphExplanation]):
    """Explanations in the order of ``index``. Indexing, slicing, iterating and ``len`` work as with a list.

    An explanation is built when it is first looked at, and kept. Nothing is computed for those that nobody looks at.

    Args:
        batches: Explanations that were computed together, one batch behind the other.
        order: Positions among all of them; all if not given.
    """

    def __init__(self, batches: Sequence[ExplanationBatch], order: Sequence[int] | None = None) -> None:
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
            part = ExplanationList(self._batches, self._order[index])
            part._built = self._built
            return part
        position = self._order[index]
        if position not in self._built:
            number = bisect_right(self._first, position) - 1
            self._built[position] = self._batches[number].build(position - self._first[number])
        return self._built[position]

    def __iter__(self) -> Iterator[SubgraphExplanation]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} explanations)"

    @property
    def node_mask(self) -> Tensor:
        """Probability of each node in each explanation, sparse, shape ``[I, N]`` with the largest ``N``."""
        return self._mask("node")

    @property
    def edge_mask(self) -> Tensor:
        """Probability of each edge in each explanation, sparse, shape ``[I, E]`` with the largest ``E``."""
        return self._mask("edge")

    def _mask(self, kind: str) -> Tensor:
        blocks = [batch.mask(kind) for batch in self._batches]
        rows = torch.cat([row + first for (row, *_), first in zip(blocks, self._first, strict=False)])
        entries = torch.stack([rows, torch.cat([column for _, column, *_ in blocks])])
        shape = (self._first[-1], max(size for *_, size in blocks))
        values = torch.cat([value for _, _, value, _ in blocks])
        whole = torch.sparse_coo_tensor(entries, values, shape, check_invariants=False)
        if isinstance(self._order, range) and self._order == range(self._first[-1]):
            return whole.coalesce()
        return whole.index_select(0, torch.tensor(list(self._order), device=rows.device)).coalesce()

    def to_dataframe(self) -> pandas.DataFrame:
        """Returns one row an explanation: what is explained, and its most probable subgraph."""
        try:
            import pandas
        except ImportError as error:
            raise ConfigError("'to_dataframe' needs pandas. Install it with 'pip install pandas'.") from error
        return pandas.DataFrame([_row(explanation) for explanation in self])


def _row(explanation: SubgraphExplanation) -> dict[str, Any]:
    first = explanation.subgraphs[0]
    return {
        "node": explanation.explained_node,
        "class": explanation.explained_class,
        "nodes": first.nodes,
        "size": len(first),
        "probability": first.probability,
        "reward": first.reward,
        "num_subgraphs": len(explanation.subgraphs),
        "effective_sample_size": explanation.effective_sample_size,
    }
