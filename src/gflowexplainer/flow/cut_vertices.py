r"""Theorem 1: the cut vertices of growing subgraphs, updated for a whole batch at once.

The cut vertex matrix :math:`\mathcal{Z}` of a state has one row and one column a member, in order of
insertion. A row is zero unless its member is a cut vertex; then it names, for every other member, the child
group that member falls into when the cut vertex is taken away. Adding a node looks at the new node's own
edges only. The readings under which the theorem as printed is right: the wedge is an elementwise product,
:math:`|\mathcal{N}(a)|` counts neighbours inside the state, and the matrix starts as zeros at two nodes.
"""

import torch
from torch import Tensor


def empty_cut_matrix(batch: int, width: int, device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Starts the cut vertex matrices ``[B, K, K]`` and the cut vertices ``[B, K]`` of states with < 3 nodes."""
    # Labels never exceed the number of members, so one byte does up to K = 127.
    dtype = torch.int8 if width <= 127 else torch.int16
    matrix = torch.zeros(batch, width, width, dtype=dtype, device=device)
    return matrix, torch.zeros(batch, width, dtype=torch.bool, device=device)


def add_node(cut: Tensor, is_cut: Tensor, connection: Tensor, size: Tensor) -> None:
    r"""Updates, in place, the cut vertices of states that each gain one node (equations 14 to 17).

    Args:
        cut: Cut vertex matrices :math:`\mathcal{Z}`, contiguous, shape ``[B, K, K]``.
        is_cut: Which members are cut vertices: the rows of ``cut`` that are not zero, contiguous, shape ``[B, K]``.
        connection: The connectivity vectors :math:`z(a)`: the members that the new node is joined to,
            shape ``[B, K]``.
        size: Nodes in each state before the new one, which takes slot ``size``, shape ``[B]``.
    """
    links = connection.sum(dim=1)
    grown = size >= 2
    _attach_leaf(cut, is_cut, connection, size, torch.nonzero(grown & (links == 1)).view(-1))
    _join_groups(cut, is_cut, connection, size, torch.nonzero(grown & (links > 1)).view(-1))


# Rows are read and written by their flat number, state * K + vertex: index_select copies whole rows of bytes,
# several times faster than indexing by a pair of tensors.


def _attach_leaf(cut: Tensor, is_cut: Tensor, connection: Tensor, size: Tensor, state: Tensor) -> None:
    """Case 1: in states ``[S]`` the new node hangs on one member, from now on a cut vertex (equation 16)."""
    if state.numel() == 0:
        return
    width = cut.size(1)
    anchor = connection.index_select(0, state).byte().argmax(dim=1)
    slot = size.index_select(0, state)
    # In every other cut vertex' row the new node joins the group of the member it hangs on.
    cut[state, :, slot] = cut[state, :, anchor]
    vertex = state * width + anchor
    row = cut.view(-1, width).index_select(0, vertex)
    # A member that was no cut vertex has all others in one group, number 1, and itself in none.
    others = slot * ~is_cut.view(-1).index_select(0, vertex)
    row += torch.arange(width, device=state.device) < others[:, None]
    row.scatter_(1, anchor[:, None], 0)
    row.scatter_(1, slot[:, None], row.amax(dim=1, keepdim=True) + 1)
    cut.view(-1, width).index_copy_(0, vertex, row)
    is_cut.view(-1).index_fill_(0, vertex, True)


def _join_groups(cut: Tensor, is_cut: Tensor, connection: Tensor, size: Tensor, state: Tensor) -> None:
    """Case 2: in states ``[S]`` the new node joins several members and the child groups they are in (equation 17)."""
    width = cut.size(1)
    entry = torch.nonzero(is_cut.index_select(0, state).view(-1)).view(-1)
    if entry.numel() == 0:
        return
    position = entry // width
    state = state.index_select(0, position)
    vertex = entry + (state - position) * width
    row = cut.view(-1, width).index_select(0, vertex)
    touched = row * connection.index_select(0, state)
    label = touched.amax(dim=1)
    # Untouched members are zero, and zero minus one wraps to the largest number: this is the least group touched.
    least = ((touched - 1) & torch.iinfo(touched.dtype).max).amin(dim=1) + 1
    # Most cut vertices see the new node joined to one of their groups; few of them see groups grow together.
    several = torch.nonzero(least < label).view(-1)
    if several.numel() > 0:
        label[several] = _merge_groups(
            cut, is_cut, *(value.index_select(0, several) for value in (vertex, row, touched, label))
        )
    cut.view(-1).scatter_(0, vertex * width + size.index_select(0, state), label)


def _merge_groups(cut: Tensor, is_cut: Tensor, vertex: Tensor, row: Tensor, touched: Tensor, label: Tensor) -> Tensor:
    """Marks touched groups by one ``label`` ``[R]`` in the rows ``vertex``; returns it, 0 where nothing is cut now."""
    is_touched = torch.zeros(row.size(0), row.size(1) + 1, dtype=torch.bool, device=row.device)
    is_touched.scatter_(1, touched.long(), True)
    is_touched[:, 0] = False
    merged = is_touched.gather(1, row.long())
    # All groups touched: they hold together without this vertex, which is none of the cut any more.
    stays = (merged ^ (row != 0)).any(dim=1)
    row = torch.where(merged, label[:, None], row) * stays[:, None]
    cut.view(-1, row.size(1)).index_copy_(0, vertex, row)
    is_cut.view(-1).index_copy_(0, vertex, stays)
    return label * stays
