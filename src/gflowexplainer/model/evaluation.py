"""Evaluation of the user's model: it comes back as it was, also if an exception is raised, and it can be looked at."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from gflowexplainer.ops.global_state import GLOBAL_STATE

_evaluating = threading.local()


def is_evaluating(model: nn.Module) -> bool:
    """Whether this thread is inside an :func:`evaluation_mode` block of ``model``."""
    return any(known is model for known in _models())


def _models() -> list[nn.Module]:
    if not hasattr(_evaluating, "models"):
        _evaluating.models = []
    return _evaluating.models


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[nn.Module]:
    """Puts ``model`` into evaluation mode without gradients for the length of the block.

    Restored afterwards, whatever happens inside: the training flag of every module, every buffer, and the
    state of the random number generators of torch, numpy and Python. Layers that remember a normalised graph
    (``cached=True``) look at the graph they are given within the block, and remember theirs again after it.

    One thread at a time evaluates a model; others wait.
    """
    with GLOBAL_STATE, ExitStack() as stack:
        _models().append(model)
        stack.callback(_models().pop)
        _enter(model, stack)
        with torch.no_grad():
            yield model


def _enter(model: nn.Module, stack: ExitStack) -> None:
    """Changes to evaluation mode, and leaves with ``stack`` what it takes to change back."""
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers()) if tensor.is_cuda}
    stack.enter_context(torch.random.fork_rng(devices=list(devices)))
    stack.callback(np.random.set_state, np.random.get_state())
    stack.callback(random.setstate, random.getstate())
    for module in model.modules():
        stack.callback(setattr, module, "training", module.training)
        stack.enter_context(_same_buffers(module))
        stack.enter_context(_without_memory(module))
    model.eval()


@contextmanager
def _same_buffers(module: nn.Module) -> Iterator[None]:
    """Restores the buffers of one module, also those that are replaced, added or deleted."""
    before = {name: (buffer, _copy(buffer)) for name, buffer in module._buffers.items()}
    try:
        yield
    finally:
        scripted = isinstance(module, torch.jit.ScriptModule)  # which cannot lose a buffer
        if not scripted:
            module._buffers.clear()
        for name, (buffer, content) in before.items():
            if not scripted:
                module._buffers[name] = buffer
            # Untouched ones are not written to: the user may still call backward() through them.
            if buffer is not None and content is not None and not _same(buffer, content):
                with torch.no_grad():
                    buffer.copy_(content)


def _copy(buffer: Tensor | None) -> Tensor | None:
    return None if buffer is None else buffer.detach().clone()


def _same(one: Tensor, other: Tensor) -> bool:
    if one.layout != torch.strided:  # torch compares dense tensors only
        one, other = one.to_dense(), other.to_dense()
    return torch.equal(one, other)


@contextmanager
def _without_memory(module: nn.Module) -> Iterator[None]:
    """Makes a layer forget the graph it remembers for good (PyG's ``cached``), for the length of a block."""
    memory = {}
    if isinstance(module, MessagePassing):
        memory = {name: value for name, value in vars(module).items() if name.startswith("_cached")}
        if "cached" in vars(module):
            memory["cached"] = module.cached
    try:
        for name in memory:
            setattr(module, name, False if name == "cached" else None)
        yield
    finally:
        for name, value in memory.items():
            setattr(module, name, value)


@contextmanager
def outputs_seen(
    layers: Iterable[tuple[str, nn.Module]], keep: Callable[[str, Any, tuple[Any, ...]], None]
) -> Iterator[None]:
    """Hands the output of each layer on while the block lasts: its name, what it returned, and what it was given.

    Hooks also listen to calls of other threads, so the model is to be in :func:`evaluation_mode` already.
    """

    def hook_of(name: str) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            keep(name, output[0] if isinstance(output, tuple) else output, (*args, *kwargs.values()))

        return hook

    with ExitStack() as stack:
        for name, layer in layers:
            stack.callback(layer.register_forward_hook(hook_of(name), with_kwargs=True).remove)
        yield
