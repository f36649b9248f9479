"""One call of a model that is stored: by what it returns, a change is found that no fingerprint shows.

An activation, a hook, a helper function or what an object holds may be another one though classes, tensors and plain
attributes are the same. Then the model returns something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gflowexplainer.errors import CheckpointError, ModelError
from gflowexplainer.model.evaluation import evaluation_mode
from gflowexplainer.ops.devices import device_of

_SAME = 1e-3
"""Outputs that differ by less, relative to the largest, are the same: sums are made in another order elsewhere."""


class _NoTensor(Exception):
    """Something that cannot be stored."""


@dataclass(frozen=True)
class Witness:
    """What a model was given, and what it returned.

    Attributes:
        given: The tensors that it was given, by their place: a position or a name, and keys within it.
        returned: The tensors that it returned, by their place.
    """

    given: dict[str, Tensor]
    returned: dict[str, Tensor]

    @classmethod
    def of(cls, model: nn.Module, evaluate: Callable[[], Any]) -> Witness | None:
        """Records the call of the model that ``evaluate`` makes; ``None`` where it cannot be stored."""
        given: list[dict[str, Tensor]] = []
        returned: list[dict[str, Tensor]] = []

        def before(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            given.append(dict(_flat({**dict(enumerate(args)), **kwargs})))

        def after(_module: nn.Module, _args: Any, output: Any) -> None:
            returned.append(dict(_flat([output])))

        with evaluation_mode(model):
            try:
                handles = [model.register_forward_pre_hook(before, with_kwargs=True)]
                handles.append(model.register_forward_hook(after))
            except (RuntimeError, AttributeError):  # of a scripted model
                return None
            try:
                evaluate()
            except _NoTensor:
                return None
            finally:
                for handle in handles:
                    handle.remove()
        return cls(given[0], returned[0])

    def agrees(self, model: nn.Module) -> bool:
        """Whether a model returns the same again."""
        device, args, kwargs = device_of(model, torch.device("cpu")), dict[int, Any](), dict[str, Any]()
        for name, value in self.given.items():
            place: Any = args if isinstance(json.loads(name)[0], int) else kwargs
            *outer, last = [tuple(key) if isinstance(key, list) else key for key in json.loads(name)]
            for key in outer:
                place = place.setdefault(key, {})
            place[last] = value.to(device, copy=True)
        with evaluation_mode(model):
            try:
                here = dict(_flat([model(*(args[number] for number in sorted(args)), **kwargs)]))
            except Exception as error:  # whatever the user's model raises
                raise ModelError(
                    f"{type(model).__name__} failed when it was evaluated once more as it was when this was fitted: "
                    f"{type(error).__name__}: {error}. If it is another model, fit again."
                ) from error
        if here.keys() != self.returned.keys():
            return False
        return all(_alike(here[name], value) for name, value in self.returned.items())

    def tensors(self) -> dict[str, Tensor]:
        """Returns the tensors of a file."""
        found = {f"given {name}": value for name, value in self.given.items()}
        return found | {f"returned {name}": value for name, value in self.returned.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Witness | None:
        """Reads what :meth:`tensors` returned; ``None`` if there is nothing."""
        split = {kind: {k.partition(" ")[2]: v for k, v in tensors.items() if k.startswith(kind)} for kind in _KINDS}
        for name, value in tensors.items():
            if value.is_floating_point() and not torch.isfinite(value).all():
                raise CheckpointError(f"The stored call '{name}' holds NaN or infinity. Fit again.")
        return cls(**split) if tensors else None


_KINDS = ("given", "returned")


def _flat(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[str, Tensor]]:
    """Lists the tensors in a nest of dictionaries and sequences by their place."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        yield json.dumps(place), value.detach().cpu().clone(memory_format=torch.contiguous_format)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, (*place, key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _flat(inner, (*place, number))
    else:
        raise _NoTensor


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.numel() == 0:
        return one.shape == other.shape
    both = one.double(), other.double()
    return torch.allclose(*both, rtol=_SAME, atol=_SAME * float(both[1].abs().max()), equal_nan=True)
