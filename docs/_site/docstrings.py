"""Docstrings as Markdown: what is written for Sphinx there is understood by mkdocs."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

ROLE = re.compile(r":(?:class|meth|func|attr|mod|data|exc):`~?(?:[\w.]*\.)?([\w]+)`")
MATH = re.compile(r":math:`([^`]*)`")
BLOCK = re.compile(r"^( *)\.\. code-block:: (\w+)\n\n((?:\1    .*\n?|\n)+)", re.MULTILINE)


def as_markdown(text: str) -> str:
    """Turns roles into code and code blocks into fences."""

    def fenced(match: re.Match[str]) -> str:
        indent, language, body = match.groups()
        lines = [line[4:] if line.startswith(indent + "    ") else line for line in body.rstrip("\n").split("\n")]
        return "\n".join([f"{indent}```{language}", *lines, f"{indent}```", "", ""])

    return BLOCK.sub(fenced, MATH.sub(r"`\1`", ROLE.sub(r"`\1`", text)))


class Docstrings(Extension):
    """Rewrites every docstring before it is read."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrites the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
