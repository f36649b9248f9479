"""A user's own model: imported by name, and filled with weights from a file without pickle."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from gflowexplainer.errors import CheckpointError, ConfigError, ModelError, did_you_mean
from gflowexplainer.storage.files import is_file

_WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Names under which training scripts put a state dict beside other things."""


def load_model(reference: str) -> nn.Module:
    """Imports a model.

    Args:
        reference: ``package.module:name`` or ``file.py:name``. Modules are also looked for in the current folder. The
            name is that of a function or a class, which is called without arguments, or of an ``nn.Module`` itself.

    Example:
        >>> type(load_model("gflowexplainer.testing:NodeModel")).__name__
        'NodeModel'
    """
    place, colon, name = reference.rpartition(":")
    if not (colon and place and name):
        raise ConfigError(
            f"'--model' takes package.module:name, where the name is a function without arguments that returns the "
            f"model, such as my_models:build (got {reference!r})."
        )
    found = _attribute(_module(place), place, name)
    if isinstance(found, nn.Module):
        return found
    if not callable(found):
        raise ModelError(
            f"'{reference}' is a {type(found).__name__}. Name a function or a class that can be called without "
            "arguments, or an nn.Module."
        )
    try:
        model = found()
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"Calling '{reference}', without arguments, failed: {_said(error)}. If it needs some, write a function "
            "that fills them in."
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"'{reference}' returned a {type(model).__name__}, not a torch.nn.Module. Return the model alone."
        )
    return model


def _module(place: str) -> ModuleType:
    _look_in(Path.cwd())
    try:
        return _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{place}.".startswith(f"{missing}."):
            hint = did_you_mean(place, (file.stem for file in sorted(Path.cwd().glob("*.py"))))
            raise ConfigError(
                f"There is no module '{place}' in the current folder or among the installed packages.{hint} "
                "Run from the folder that holds it, or name the file, as in path/to/file.py:name."
            ) from error
        raise ModelError(f"Importing '{place}' failed: {_said(error)}.") from error


def _look_in(folder: Path) -> None:
    """Lets modules be imported from a folder, after all others: a file there must not stand in for a package."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"There is no file '{path}' to import a model from.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and the like look their module up
    _look_in(path.resolve().parent)
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, place: str, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [known for known in vars(found) if not known.startswith("_")] if hasattr(found, "__dict__") else []
            raise ConfigError(f"'{place}' has no '{part}'.{did_you_mean(part, public)}")
        found = getattr(found, part)
    return found


def fill_weights(model: nn.Module, path: str | Path) -> nn.Module:
    """Fills ``model`` with the weights in a file; every name and shape must agree.

    Args:
        model: The model, changed in place.
        path: ``.safetensors``, or ``.pt``/``.pth`` written by ``torch.save(model.state_dict(), path)``. The latter is
            read with ``weights_only=True``, which runs nothing. A state dict that lies in a dictionary under
            ``"state_dict"``, ``"model_state_dict"`` or ``"model"``, and the prefix ``module.`` that ``DataParallel``
            leaves, are understood.
    """
    path = Path(path)
    given = _read_weights(path)
    if all(name.startswith("module.") for name in given):
        given = {name.removeprefix("module."): value for name, value in given.items()}
    wanted = model.state_dict()
    shapes = [
        f"{name} ({tuple(given[name].shape)} there, {tuple(value.shape)} in the model)"
        for name, value in wanted.items()
        # The shape of a lazy layer is only known once weights are there.
        if name in given and not nn.parameter.is_lazy(value) and value.shape != given[name].shape
    ]
    found = {"missing": sorted({*wanted} - {*given}), "unexpected": sorted({*given} - {*wanted})}
    problems = [f"{title}: {_few(names)}" for title, names in (found | {"of another shape": shapes}).items() if names]
    if problems:
        raise CheckpointError(
            f"The weights in '{path}' do not fit {type(model).__name__}; {'; '.join(problems)}. "
            "Build the model as it was when the weights were saved."
        )
    try:
        model.load_state_dict(given)
    except RuntimeError as error:
        raise CheckpointError(f"The weights in '{path}' do not fit {type(model).__name__}: {_said(error)}.") from error
    return model


def _read_weights(path: Path) -> dict[str, Tensor]:
    if not is_file(path):
        raise CheckpointError(f"There is no file '{path}' with weights.")
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(f"'{path}' cannot be read as safetensors, or is damaged ({error}).") from error
    if path.suffix not in (".pt", ".pth"):
        raise ConfigError(f"Weights are read from .safetensors, .pt or .pth (got '{path.name}').")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"'{path}' holds more than tensors, and reading that could run foreign code. Save the weights alone: "
            "torch.save(model.state_dict(), 'weights.pt')."
        ) from error
    except Exception as error:
        raise CheckpointError(f"'{path}' cannot be read by torch.load ({_said(error)}).") from error
    for name in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise CheckpointError(
            f"'{path}' holds a {type(content).__name__} that is no state dict. Save one with "
            "torch.save(model.state_dict(), 'weights.pt')."
        )
    return dict(content)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _said(error: BaseException) -> str:
    """Returns an error in one line, with the place in the user's file where it came from."""
    text = " ".join(str(error).split()) or "no message"
    last = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    where = f" ({Path(last[-1].filename).name}, line {last[-1].lineno})" if last and last[-1].name else ""
    if isinstance(error, SyntaxError):
        where = ""
    return f"{type(error).__name__}: {text}{where}".rstrip(".")
