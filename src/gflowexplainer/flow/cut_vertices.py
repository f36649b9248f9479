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
        cut: Cut vertex matrices :math:`\mathcal{Z}`, shape ``[B, K, K]``.
        is_cut: Which members are cut vertices: the rows of ``cut`` that are not zero, shape ``[B, K]``.
        connection: The connectivity vectors :math:`z(a)`: the members that the new node is joined to,
            shape ``[B, K]``.
        size: Nodes in each state before the new one, which takes slot ``size``, shape ``[B]``.
    """
    links = connection.sum(dim=1)
    grown = size >= 2
    _attach_leaf(cut, is_cut, connection, size, torch.nonzero(grown & (links == 1)).flatten())
    _join_groups(cut, is_cut, connection, size, grown & (links > 1))


def _attach_leaf(cut: Tensor, is_cut: Tensor, connection: Tensor, size: Tensor, state: Tensor) -> None:
    """Case 1: the new node hangs on one member, which is a cut vertex from now on (equation 16)."""
    if state.numel() == 0:
        return
    anchor = connection[state].byte().argmax(dim=1)
    slot = size[state]
    each = torch.arange(state.numel(), device=state.device)
    row = cut[state, anchor]
    # A member that was no cut vertex has all others in one group, number 1, and itself in none.
    members = torch.arange(cut.size(1), device=state.device) < slot[:, None]
    row = torch.where((~is_cut[state, anchor])[:, None] & members, 1, row)
    row[each, anchor] = 0
    row[each, slot] = row.amax(dim=1) + 1
    # In every other cut vertex' row the new node joins the group of the member it hangs on.
    column = cut[state, :, anchor]
    column[each, anchor] = row[each, slot]
    cut[state, anchor] = row
    cut[state, :, slot] = column
    is_cut[state, anchor] = True


def _join_groups(cut: Tensor, is_cut: Tensor, connection: Tensor, size: Tensor, several: Tensor) -> None:
    """Case 2: the new node joins several members and merges the child groups it touches (equation 17)."""
    state, vertex = torch.nonzero(is_cut & several[:, None], as_tuple=True)
    if state.numel() == 0:
        return
    row = cut[state, vertex]
    touched = torch.where(connection[state], row, 0)
    label = touched.amax(dim=1, keepdim=True)
    is_touched = torch.zeros(row.size(0), row.size(1) + 1, dtype=torch.bool, device=row.device)
    is_touched.scatter_(1, touched.long(), True)
    is_touched[:, 0] = False
    merged = is_touched.gather(1, row.long())
    # All groups touched: they hold together without this vertex, which is none of the cut any more.
    healed = (merged | (row == 0)).all(dim=1)
    row = torch.where(merged, label, row)
    row.scatter_(1, size[state, None], label)
    row[healed] = 0
    cut[state, vertex] = row
    is_cut[state[healed], vertex[healed]] = False
