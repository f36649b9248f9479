"""What the model's message-passing layers put out at every node, read while it is called on a whole graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from gflowexplainer.errors import ModelError
from gflowexplainer.model.adapter import remedy, shown_name
from gflowexplainer.model.evaluation_mode import evaluation_mode
from gflowexplainer.model.locality import clones


def observe(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    arguments: dict[str, Any] | None = None,
    *,
    writes: bool = False,
) -> tuple[Any, Tensor]:
    """Calls the model once on a whole graph and looks on; one that ``writes`` into its input is given copies.

    Returns:
        What the model returned, unchecked, and the outputs of all its message-passing layers, shape ``[N, H]``.
    """
    seen: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
        if isinstance(output, tuple):
            output = output[0]
        if isinstance(output, Tensor) and output.dim() >= 2 and output.size(0) == x.size(0):
            seen.append(output.detach().flatten(1))

    named = {"x": x, "edge_index": edge_index, **(arguments or {})}
    given = clones(named) if writes else dict(named)
    # Hooks would also listen to calls of other threads, so the model is borrowed first.
    with evaluation_mode(model):
        handles = []
        try:
            handles = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, MessagePassing)]
            answer = model(given.pop("x"), given.pop("edge_index"), **given)
        except Exception as error:
            raise ModelError(
                f"{shown_name(model)} failed on the whole graph: {type(error).__name__}: {str(error).rstrip('.')}"
                f"{remedy(model, error, named)}"
            ) from error
        finally:
            for handle in handles:
                handle.remove()
    return answer, torch.cat(seen, dim=1) if seen else x.new_zeros(x.size(0), 0)
