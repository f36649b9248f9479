"""The code that a value comes from, as a digest: what is stored under another one is computed again.

The digest of a value is over the module that computes it (of a cell: its explainer's), over the modules that every
value needs (:data:`EVERYWHERE`: how data and GNNs are loaded, instances are cut out and explanations are measured), and
over all modules of both packages that these import, directly or not. So a change of our training makes our own cells
anew and leaves those of peers that do not use it. Modules that only store, show or arrange results (:data:`FRAME`) do
not count. Any change of a file counts, be it a comment.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from gflowbench.explainers.registry import module_of
from gflowexplainer.report.provenance import code_digest, source_path

PACKAGES = ("gflowbench", "gflowexplainer")
EVERYWHERE = ("gflowbench.explainers.interface", "gflowbench.metrics.measurement", "gflowbench.protocol.problems")
"""What every value needs, whatever it is computed by."""
FRAME = (
    "gflowbench.paper.case_pictures",
    "gflowbench.paper.experiment",
    "gflowbench.paper.line_figures",
    "gflowbench.paper.steps",
    "gflowbench.protocol",
    "gflowexplainer.errors",
    "gflowexplainer.drawing",
    "gflowexplainer.report",
    "gflowexplainer.storage",
    "gflowexplainer.version",
)
"""Modules and packages that change no value."""


@cache
def cell_code(explainer: str, *, links: bool = False) -> str:
    """Returns the digest of the code that a cell of an explainer, of links or not, comes from, by its name."""
    return code_of(module_of(explainer, links=links))


def step_code(compute: Callable[..., Any]) -> str:
    """Returns the digest of the code that the value of a function comes from."""
    while isinstance(compute, partial):
        compute = compute.func
    return code_of(getattr(compute, "__module__", None))


@cache
def code_of(module: str | None) -> str:
    """Returns the digest for a module that computes values; one that is not of these packages may use all of them."""
    if module is None or module.split(".")[0] not in PACKAGES:
        return code_digest(*PACKAGES)
    return code_digest(*sorted(reached(module, *EVERYWHERE)))


def reached(*modules: str) -> frozenset[str]:
    """Returns ``modules`` and all modules of these packages that they import, directly or not, without the frame."""
    found: set[str] = set()
    new = set(modules)
    while new:
        found |= new
        new = {name for module in new for name in _imports(module) if not _is_frame(name)} - found
    return frozenset(found)


def _is_frame(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in FRAME)


@cache
def _imports(module: str) -> frozenset[str]:
    """Returns the modules of these packages that a module imports at any place, or names as ``"module:attribute"``."""
    found: set[str] = set()
    for node in _nodes(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if _is_ours(alias.name)}
        elif isinstance(node, ast.ImportFrom) and _is_ours(node.module or ""):
            found |= {_home(str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name, colon, attribute = node.value.partition(":")
            if colon and attribute.isidentifier() and _is_ours(name) and source_path(name) is not None:
                found.add(name)
    return frozenset(found)


def _home(module: str, name: str) -> str:
    """Returns the module that ``from module import name`` reads; packages only hand names on."""
    if source_path(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    path = source_path(module)
    if path is not None and path.is_dir():
        for node in ast.walk(_tree(f"{module}.__init__")):
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                return _home(str(node.module), name)
        return f"{module}.__init__"
    return module


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walks through a tree, past imports that are for types only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _nodes(node)


@cache
def _tree(module: str) -> ast.Module:
    path = source_path(module)
    assert path is not None, module
    return ast.parse((path / "__init__.py" if path.is_dir() else path).read_bytes())


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in PACKAGES
