"""A walk over the modules of a model that is remembered, so that a second one only says whether all is as it was.

To name every tensor and attribute takes longer than to compare them with what was there: a module that has the same
attributes, of the same types and with the same plain values, need not be looked at one attribute after the other.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch import Tensor, nn

PLAIN = (bool, int, float, str, type(None))
"""Types whose values are compared. No attribute of another type is looked into, but for tensors."""


class _Seen(NamedTuple):
    """A module as it was; it and what it consists of are only held weakly.

    Attributes:
        module, kind: The module and its type.
        names, types: Its attributes and their types.
        plain, values: Positions of the plain ones among them, and their values.
        tensors: Positions of tensors among them.
        owned, owned_types: Names of parameters, of buffers and of the modules inside, and their types.
        inside: The modules inside.
    """

    module: weakref.ref[nn.Module]
    kind: type
    names: list[str]
    types: list[type]
    plain: list[int]
    values: list[Any]
    tensors: list[int]
    owned: list[str]
    owned_types: list[type]
    inside: list[weakref.ref[nn.Module] | None]

    @classmethod
    def of(cls, module: nn.Module) -> _Seen:
        """Looks at a module."""
        names, values = list(vars(module)), list(vars(module).values())
        # A model may be trained or evaluated and is the same.
        plain = [i for i, v in enumerate(values) if isinstance(v, PLAIN) and names[i] != "training"]
        owned, held, modules = _owned(module)
        return cls(
            weakref.ref(module),
            type(module),
            names,
            list(map(type, values)),
            plain,
            [values[i] for i in plain],
            [i for i, v in enumerate(values) if isinstance(v, Tensor)],
            owned,
            list(map(type, held)),
            [None if inner is None else weakref.ref(inner) for inner in modules],
        )

    def tensors_now(self) -> list[Tensor] | None:
        """Returns the tensors of the module, attributes first; ``None`` where anything else has changed."""
        module = self.module()
        if module is None or type(module) is not self.kind:
            return None
        given = vars(module)
        values = list(given.values())
        if list(map(type, values)) != self.types or list(given) != self.names:
            return None
        if [values[i] for i in self.plain] != self.values:
            return None
        owned, held, modules = _owned(module)
        if owned != self.owned or list(map(type, held)) != self.owned_types:
            return None
        for inner, known in zip(modules, self.inside, strict=True):
            if inner is not (None if known is None else known()):
                return None
        found = [value for value in held if value is not None]
        return [values[i] for i in self.tensors] + found if self.tensors else found


def _owned(module: nn.Module) -> tuple[list[str], list[Tensor | None], list[nn.Module | None]]:
    """Returns the names of all that belongs to a module, its parameters and buffers, and the modules inside."""
    parameters, buffers, modules = module._parameters, module._buffers, module._modules
    # Those of a scripted module are no dictionaries: one cannot go through them as such.
    names = [*parameters.keys(), *buffers.keys(), *modules.keys()]
    return names, [*parameters.values(), *buffers.values()], [*modules.values()]


class ModelWalk:
    """What a walk over a model met.

    Args:
        model: The model.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        self._seen, self._names = list[_Seen](), list[str]()
        for name, module in _modules(model):
            seen = _Seen.of(module)
            held = zip(seen.owned, seen.owned_types, strict=False)
            self._names += [f"{name}!{seen.names[i]}" for i in seen.tensors]
            self._names += [f"{name}.{own}" for own, kind in held if kind is not type(None)]
            self._seen.append(seen)

    def tensors(self, model: nn.Module) -> dict[str, Tensor] | None:
        """Returns the tensors of a model by name: parameters, buffers, and those that are plain attributes.

        ``None`` where it is not the model of the walk, consists of other modules, or one of them says something else
        of itself in plain values. Whether the tensors are the same ones is not looked at.
        """
        if self._model() is not model:
            return None
        found: list[Tensor] = []
        for seen in self._seen:
            own = seen.tensors_now()
            if own is None:
                return None
            found += own
        return dict(zip(self._names, found, strict=True))


def _modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Lists all modules of a model, each once, with names that differ."""
    ahead, met = [("", model)], {id(model)}
    while ahead:
        name, module = ahead.pop()
        yield name, module
        for key, inner in module._modules.items():
            if inner is not None and id(inner) not in met:
                met.add(id(inner))
                ahead.append((f"{name}.{key}", inner))
