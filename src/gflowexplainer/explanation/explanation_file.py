"""The file of an explanation: one safetensors file with JSON in its header, for graphs with one or several types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.explain import ModelConfig

from gflowexplainer.errors import CheckpointError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.model.config import config_to_dict
from gflowexplainer.ops.sparse_rows import Fields, pack_fields, unpack_fields
from gflowexplainer.storage.checkpoints import read_checkpoint, write_checkpoint

KINDS = {"explanation": "SubgraphExplanation", "typed explanation": "TypedExplanation"}
"""What files say that they hold, and the class that reads them."""
_APART = " | "
"""Stands between the number of a store and the name of a field."""


def write_explanation(explanation: Any, path: Path) -> None:
    """Stores an explanation with all its fields."""
    tensors: dict[str, Tensor] = {}
    sparse: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for number, store in enumerate(explanation.stores):
        raw = store._mapping.raw() if isinstance(store._mapping, Fields) else dict(store._mapping)
        fields = {f"{number}{_APART}{name}": value for name, value in raw.items()}
        own, packed = pack_fields(fields)
        tensors, sparse = tensors | own, sparse | packed
        for name, value in fields.items():
            if isinstance(value, Tensor):
                # Cloned: two fields may share memory, as prediction and target of a regression do.
                tensors[name] = value.detach().clone()
            elif isinstance(value, int | float | str | bool | None):
                plain[name] = value
            elif name not in packed:
                raise CheckpointError(
                    f"The field '{name.split(_APART)[1]}' of the explanation is a {type(value).__name__}, which cannot "
                    "be stored. Remove it first."
                )
    known = explanation._own
    meta = {
        "kind": explanation.KIND,
        "distribution": explanation._known.to_dict(),
        "keys": [list(store._key) if isinstance(store._key, tuple) else store._key for store in explanation.stores],
        "fields": plain,
        "sparse": sparse,
        "model_config": config_to_dict(known["_model_config"]) if "_model_config" in known else None,
        "model_args": known.get("_model_args"),
        "features_shown": "_features_shown" in known,
        "words": explanation.words_of_data,
    }
    write_checkpoint(path, {"fields": tensors}, meta)


def read_explanation(cls: Any, path: Path, device: torch.device | str) -> Any:
    """Reads an explanation of the class ``cls``."""
    sections, meta = read_checkpoint(path, device, holds="explanation")
    kind = meta.get("kind")
    if kind != cls.KIND:
        if isinstance(kind, str) and kind in KINDS:
            raise CheckpointError(f"'{path}' holds a {KINDS[kind]}. Load it by {KINDS[kind]}.load.")
        raise CheckpointError(f"'{path}' holds no explanation (but {kind or 'a training'}).")
    try:
        named = unpack_fields(sections.get("fields", {}), meta["sparse"]) | meta["fields"]
        keys = [tuple(key) if isinstance(key, list) else key for key in meta["keys"]]
        _check_keys(meta["keys"], keys)
        stores: list[dict[str, Any]] = [{} for _ in keys]
        for name, value in named.items():
            number, field = name.split(_APART, 1)
            stores[int(number)][field] = value
        explanation = cls.of(SubgraphDistribution.from_dict(meta["distribution"]), dict(zip(keys, stores, strict=True)))
        if meta["model_config"] is not None:
            explanation._model_config = ModelConfig(**meta["model_config"])
        if meta["model_args"] is not None:
            explanation._model_args = meta["model_args"]
        if meta["features_shown"] not in (True, False):
            raise ValueError("'features_shown'")
        if meta["features_shown"]:
            explanation._features_shown = True
        explanation._words = _checked_words(meta["words"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise CheckpointError(f"'{path}' holds an explanation of another version ({error}).") from error
    return explanation


def _check_keys(written: Any, keys: list[Any]) -> None:
    """Refuses names of stores that no explanation has: none, a type of nodes, or a relation."""
    relation = [isinstance(key, tuple) and len(key) == 3 and all(isinstance(part, str) for part in key) for key in keys]
    named = [key is None or isinstance(key, str) for key in keys]
    if not isinstance(written, list) or not keys or not all(map(any, zip(relation, named, strict=True))):
        raise ValueError("'keys'")


def _checked_words(words: Any) -> dict[str, Any]:
    """Returns the words of the data by name, or says that these are none."""
    if not isinstance(words, dict) or any(isinstance(value, dict) for value in words.values()):
        raise ValueError("'words'")
    return words
