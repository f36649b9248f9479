"""How an explanation is printed, drawn and stored, of graphs with one or several types."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from gflowexplainer.drawing.answer import sentences, title
from gflowexplainer.drawing.case import Case
from gflowexplainer.drawing.page import View
from gflowexplainer.drawing.painting import draw
from gflowexplainer.drawing.scene import Scene
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.explained import ExplainedDistribution
from gflowexplainer.explanation.explanation_file import read_explanation, write_explanation
from gflowexplainer.explanation.words import in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shown = TypeVar("Shown", bound="ShownExplanation")


class ShownExplanation(ExplainedDistribution):
    """An explanation that is a text in a terminal, a drawing in a notebook and by matplotlib, and a file."""

    KIND: str
    """What its files say that they hold."""

    @abstractmethod
    def case(self, name: str | None = None, **words: Any) -> Case:
        """Returns what drawings and reports show.

        Args:
            name: What to call it; unique in a report.
            **words: What is known of the graph, as in :class:`~gflowexplainer.report.Case`.
        """

    @abstractmethod
    def _knows_its_graph(self) -> bool:
        """Whether there are edges to be drawn."""

    def draw(
        self,
        path: str | Path | None = None,
        *,
        max_nodes: int = 60,
        surroundings: bool = False,
        ax: Axes | None = None,
        **words: Any,
    ) -> Axes:
        """Draws the explanation by matplotlib: its nodes large and labelled, their direct neighbours beside them.

        Several parts are marked by bands of different colours, and numbered.

        Args:
            path: Where to save the picture; the ending chooses the format. Without one, it is left to pyplot.
            max_nodes: Nodes drawn at most: the parts, or the first subgraph, then the most probable, then the nearest.
            surroundings: Whether to draw what lies farther away too.
            ax: Axes to draw on.
            **words: What is known of the graph; see :meth:`case`.
        """
        if max_nodes < 1:
            raise ConfigError(f"'max_nodes' must be at least 1 (got {max_nodes}).")
        case = self.case(**words)
        return draw(Scene.of(case, max_nodes), title(case), path, ax, level=2 if surroundings else 1)

    def show(self, **words: Any) -> View:
        """Returns the drawing that a notebook shows, with what is known of the graph; see :meth:`case`."""
        self.ask()
        return View([self.case(**words)])

    def __repr__(self) -> str:
        return super().__repr__() if self._own.get("_distribution") is None else in_words(self)

    def __str__(self) -> str:
        """Says in five lines what is predicted, because of what, and how sure that is; finds the parts for it."""
        known = self._own.get("_distribution") is not None and self._knows_its_graph()
        return sentences(self.case()) if known else repr(self)

    @property
    def words_of_data(self) -> dict[str, Any]:
        """Names of nodes and features, and the SMILES, that came with the explained data."""
        return self._own.get("_words", {})

    def _repr_html_(self) -> str:
        """Shows the interactive drawing in a notebook, or the words where there is nothing to draw."""
        if self._own.get("_distribution") is None or not self._knows_its_graph():
            return f"<pre>{escape(repr(self))}</pre>"
        return self.show()._repr_html_()

    def save(self, path: str | Path) -> None:
        """Stores the explanation in one safetensors file with JSON in its header.

        A certificate that has not been asked for is not computed for this; ask for it first to keep it.
        """
        write_explanation(self, Path(path))

    @classmethod
    def load(cls: type[Shown], path: str | Path, device: torch.device | str = "cpu") -> Shown:
        """Reads what :meth:`save` stored, onto ``device``."""
        return read_explanation(cls, Path(path), device)
