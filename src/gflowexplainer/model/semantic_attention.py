"""Holds HAN's attention over relations as it is on the whole graph, whatever part of it the model is given.

``HANConv`` weighs relations by an average over all nodes that it sees. On a disjoint union of subgraphs that would be
an average over all of them, and one subgraph would change what the model predicts for another. What the attention is on
the user's graph belongs to the model there, so it is recorded once and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import HANConv

_CERTAIN = 1 - 1e-7


class SemanticAttention:
    """The attention over relations of all ``HANConv`` layers of a model.

    Args:
        model: The model.
        edge_types: The relations of the graph.
    """

    def __init__(self, model: nn.Module, edge_types: tuple[tuple[str, str, str], ...]) -> None:
        self._layers = [module for module in model.modules() if isinstance(module, HANConv)]
        self._reached = {target for _, _, target in edge_types}
        self._known: dict[int, list[tuple[str, Tensor]]] | None = None

    @property
    def is_missing(self) -> bool:
        """Whether there are such layers, of which nothing is recorded yet."""
        return bool(self._layers) and self._known is None

    @contextmanager
    def recorded(self, counts: Mapping[str, int]) -> Iterator[None]:
        """Records the attention while the model works on the whole graph, which has so many nodes of each type."""
        types = self._sequence(counts)
        known: dict[int, list[tuple[str, Tensor]]] = {id(layer): [] for layer in self._layers}

        def keeper(seen: list[tuple[str, Tensor]]) -> Any:
            def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
                seen.append((types[len(seen) % len(types)], torch.tanh(output.detach()).mean(dim=1)))

            return keep

        with ExitStack() as stack:
            for layer in self._layers:
                handle = layer.k_lin.register_forward_hook(keeper(known[id(layer)]))
                stack.callback(handle.remove)
            yield
        self._known = known

    @contextmanager
    def held(self, counts: Mapping[str, int]) -> Iterator[None]:
        """Holds the recorded attention while the model works on a part with so many nodes of each type."""
        if not self._known:
            yield
            return

        def replacer(entries: Iterator[tuple[str, Tensor]]) -> Any:
            def replace(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
                mean = next((mean for key, mean in entries if counts.get(key)), None)
                if mean is None:
                    return output
                return torch.atanh(mean.clamp(-_CERTAIN, _CERTAIN))[:, None].expand_as(output)

            return replace

        with ExitStack() as stack:
            for layer in self._layers:
                handle = layer.k_lin.register_forward_hook(replacer(iter(self._known[id(layer)])))
                stack.callback(handle.remove)
            yield

    def _sequence(self, counts: Mapping[str, int]) -> list[str]:
        """Lists the types in the order in which a layer speaks of them; it skips those without nodes or relations."""
        return [key for key, count in counts.items() if count and key in self._reached]
