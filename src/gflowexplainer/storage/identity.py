"""What a stored thing is of: one identity for trainings, explainers, runs and bulk files.

An identity is a flat dictionary of short names, one for each thing that decides the result: the model (classes,
parameters, buffers, extra state, the code of its own classes), every tensor and argument that it is given, the index in
its order, the target, the settings and the version of what is stored. The same goes on; another is refused, and
:func:`differences` says what differs.

Contents are hashed at about 1.5 GB a second, once for a call that stores something.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gflowexplainer.storage.files import dumps
from gflowexplainer.version import __version__

FORMAT = 3
"""Version of what is stored; it changes where an old file would be read wrongly."""
_BLOCK = 1 << 22
"""Bytes that are hashed at once."""
_LIBRARIES = ("torch", "torch_geometric")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def content_digest(value: Any) -> str:
    """Returns a digest of any value: tensors, numbers, texts, and nests of them."""
    digest = hashlib.sha256()
    for piece in _pieces(value, ()):
        digest.update(piece)
    return digest.hexdigest()[:16]


def model_fingerprint(model: nn.Module) -> str:
    """Returns a short name of a model, to tell whether what was stored belongs to it.

    It covers the class of every module by name, parameters, buffers (sparse and non-persistent ones too), extra state,
    and plain attributes that say how a layer calculates. Whole numbers only count in layers of libraries: in a model
    of the user's own they may be counters that change with every call.
    """
    modules = [(n, type(m).__qualname__, _attributes(m), _extra_state(m)) for n, m in model.named_modules()]
    return content_digest([modules, {**dict(model.named_parameters()), **dict(model.named_buffers())}])


def code_fingerprint(model: nn.Module) -> str:
    """Returns a short name of what the functions of a model's own classes do; comments and line numbers do not count.

    Layers of libraries are left out. The same code has another name under another version of Python.
    """
    bases = {base for module in model.modules() for base in type(module).__mro__[:-1]}
    functions = [
        (f"{base.__qualname__}.{name}", _code(function.__code__))
        for base in bases
        if base.__module__.split(".")[0] not in _LIBRARIES
        for name, member in vars(base).items()
        if isinstance(function := getattr(member, "__func__", member), types.FunctionType)
    ]
    return content_digest(sorted(functions))


def settings_fingerprint(settings: Mapping[str, Any]) -> str:
    """Returns a short name of settings that changes with any of them."""
    return hashlib.sha256(dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def identity_of(
    model: nn.Module,
    graphs: Sequence[Mapping[str, Any]],
    *,
    index: Any = None,
    target: Any = None,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, str]:
    """Returns what decides a result, each thing by a digest of its content.

    Args:
        model: The explained model.
        graphs: What the model is given of each graph, by the name of the argument: ``x``, ``edge_index`` and others.
        index: Which instances, in order.
        target: What is to be preserved; ``None`` for the model's own predictions.
        settings: How to explain.
        **more: Whatever else decides.
    """
    found = {
        "format": str(FORMAT),
        "model": model_fingerprint(model),
        "code of the model": code_fingerprint(model),
        "number of graphs": str(len(graphs)),
    }
    for name in sorted({name for graph in graphs for name in graph}):
        found[name] = content_digest([graph.get(name) for graph in graphs])
    for name, value in {"index": index, "target": target, **more}.items():
        found[name] = value if isinstance(value, str) else content_digest(value)
    for name, value in (settings or {}).items():
        found[f"setting {name}"] = str(value)
    return found


def differences(there: Any, here: Mapping[str, str]) -> list[str]:
    """Returns what differs between a stored identity and that of a call, in words; empty if they agree."""
    if not isinstance(there, Mapping):
        return ["it was stored without an identity, by another version"]
    said = []
    for name in [*here, *(name for name in there if name not in here)]:
        old, new = there.get(name), here.get(name)
        if old == new or (name == "predictions" and _agree(str(old), str(new))):
            continue
        if name.startswith("setting "):
            said.append(f"{name}: {old!r} there, {new!r} here")
        elif name == "format":
            said.append(f"it is of another version of what is stored ({old!r} there, {new!r} here, in {__version__})")
        elif old is None or new is None:
            said.append(f"'{name}' is only given {'here' if old is None else 'there'}")
        else:
            said.append(f"'{name}' differs")
    return said


def _agree(one: str, other: str) -> bool:
    """Whether stored predictions are the same, but for the order in which sums were made."""
    try:
        here, there = (np.array(text.split(), dtype=float) for text in (one, other))
    except ValueError:
        return False
    return here.shape == there.shape and np.allclose(here, there, rtol=1e-3, atol=1e-4)


def _pieces(value: Any, seen: tuple[int, ...]) -> Iterator[bytes | memoryview]:
    """Yields a value as bytes, with its type and shape before them."""
    if isinstance(value, Tensor):
        yield from _tensor_pieces(value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield from _tensor_pieces(torch.from_numpy(np.ascontiguousarray(value)))
    elif isinstance(value, Enum):
        yield f"{type(value).__qualname__}.{value.name};".encode()
    elif isinstance(value, _PLAIN):
        yield f"{type(value).__name__}={value!r};".encode()
    elif id(value) in seen:
        yield b"again;"
    elif isinstance(value, Mapping):
        yield f"map {len(value)};".encode()
        for key, entry in sorted(value.items(), key=lambda item: repr(item[0])):
            yield f"{key!r}:".encode()
            yield from _pieces(entry, (*seen, id(value)))
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        entries = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
        yield f"list {len(entries)};".encode()
        for entry in entries:
            yield from _pieces(entry, (*seen, id(value)))
    else:
        yield f"{type(value).__qualname__};".encode()
        fields = vars(value) if hasattr(value, "__dict__") else {}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if not isinstance(value, type | types.FunctionType | types.MethodType):
            yield from _pieces(dict(fields), (*seen, id(value)))


def _tensor_pieces(tensor: Tensor) -> Iterator[bytes | memoryview]:
    if nn.parameter.is_lazy(tensor):
        yield b"lazy;"
        return
    tensor = tensor.detach().resolve_conj().resolve_neg()
    yield f"{tuple(tensor.shape)}{tensor.dtype}{tensor.layout};".encode()
    parts = [tensor]
    if tensor.layout != torch.strided:
        sparse = tensor.to_sparse_coo().coalesce()
        parts = [sparse.indices(), sparse.values()]
    for part in parts:
        # A single entry counts as contiguous whatever its stride, but cannot be viewed as bytes then.
        dense = part.clone(memory_format=torch.contiguous_format) if part.numel() == 1 else part.contiguous()
        flat = dense.flatten().view(torch.uint8) if dense.numel() else dense
        for begin in range(0, flat.numel(), _BLOCK):
            yield flat[begin : begin + _BLOCK].cpu().numpy().data


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Returns the plain attributes of a module that say how it calculates."""
    library = type(module).__module__.split(".")[0] in _LIBRARIES
    kinds = (bool, float, str, int) if library else (bool, float, str)
    return {
        name: value
        for name, value in vars(module).items()
        if name not in ("training", "cached") and not name.startswith("_") and type(value) in kinds
    }


def _extra_state(module: nn.Module) -> Any:
    """Returns what a module stores beside its tensors, if it does."""
    if type(module).get_extra_state is nn.Module.get_extra_state:
        return None
    return module.get_extra_state()


def _code(code: types.CodeType) -> bytes:
    """Returns what a function does: its instructions, names and constants, those of functions inside it too."""
    constants = [_code(value) if isinstance(value, types.CodeType) else _constant(value) for value in code.co_consts]
    return b"\0".join([code.co_code, repr(code.co_names).encode(), *constants])


def _constant(value: Any) -> bytes:
    """Returns a constant as bytes; the order of a set depends on the process, so it is sorted."""
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value).encode()
