"""Explanations as short texts, so that every finished cell of an evaluation can keep its own."""

import base64
import zlib

import numpy as np
import torch
from torch import Tensor


def pack(mask: Tensor, node_counts: Tensor) -> dict[str, str]:
    """Writes a mask ``[n]`` over instances of ``node_counts`` ``[I]`` nodes; :func:`unpack` reads it."""
    bits = np.packbits(mask.cpu().numpy())
    counts = node_counts.cpu().numpy().astype("<i4")
    return {"mask": _encode(bits.tobytes()), "node_counts": _encode(counts.tobytes())}


def unpack(texts: dict[str, str]) -> tuple[Tensor, Tensor]:
    """Reads a mask ``[n]`` and the node counts ``[I]`` that :func:`pack` wrote."""
    counts = np.frombuffer(_decode(texts["node_counts"]), dtype="<i4").astype(np.int64)
    bits = np.frombuffer(_decode(texts["mask"]), dtype=np.uint8)
    mask = np.unpackbits(bits, count=int(counts.sum())).astype(bool)
    return torch.from_numpy(mask), torch.from_numpy(counts)


def _encode(data: bytes) -> str:
    return base64.b85encode(zlib.compress(data, 9)).decode("ascii")


def _decode(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))
