"""What mkdocs does beside its own: pages for files outside of docs that a page links to, and notebooks with outputs."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(\]\()((?:\.\./)+)([^)#\s]+)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)#:\s]+)\)")
NOTEBOOKS = ("citation", "molecules", "recommendation")
logger = logging.getLogger("mkdocs.hooks.gflowexplainer")


def on_files(files: Files, config: Any) -> Files:
    """Adds what pages link to outside of docs, the changelog, and the notebooks."""
    wanted = {"CHANGELOG.md"}
    for page in files.documentation_pages():
        depth = page.src_uri.count("/")
        for _, up, target in LINK.findall(page.content_string):
            if up.count("../") > depth:
                wanted.add(target)
    for page in [ROOT / target for target in wanted if target.endswith(".md") and (ROOT / target).is_file()]:
        pictures = PICTURE.findall(page.read_text(encoding="utf-8"))
        wanted |= {(page.parent / name).relative_to(ROOT).as_posix() for name in pictures}
    for target in sorted(wanted):
        if not (ROOT / target).is_file():
            logger.warning("A page links to %s, which does not exist.", target)
        elif target.endswith(".md"):
            files.append(File.generated(config, target, content=(ROOT / target).read_text(encoding="utf-8")))
        else:
            files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
    for name in NOTEBOOKS:
        files.append(File.generated(config, f"notebooks/{name}.md", content=notebook_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links that leave docs to the copies of what they mean."""
    if page.file.src_uri.startswith("results/") or page.file.src_uri == "CHANGELOG.md":
        return markdown
    depth = page.file.src_uri.count("/")

    def inside(match: re.Match[str]) -> str:
        up = match.group(2).count("../")
        return match.group(1) + "../" * (up - 1 if up > depth else up) + match.group(3)

    return LINK.sub(inside, markdown)


def notebook_page(name: str) -> str:
    """Writes a notebook as a page, executed unless ``GFLOWEXPLAINER_DOCS`` says ``quick``."""
    import nbformat

    if os.environ.get("GFLOWEXPLAINER_DOCS") == "quick":
        notebook = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    else:
        # mkdocs takes back what hooks add to the path while they are loaded.
        sys.path.insert(0, str(Path(__file__).parent))
        from notebooks import run_notebook

        with TemporaryDirectory() as folder:
            notebook = run_notebook(name, Path(folder))
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            parts += filter(None, map(_output, cell.outputs))
    return "\n\n".join(parts) + "\n"


def _output(output: Any) -> str:
    """Writes what a cell shows: a drawing, a picture or text; progress on standard error is left out."""
    if output.output_type == "stream":
        return "" if output.name == "stderr" else f"```text\n{output.text.rstrip()}\n```"
    data = output.get("data", {})
    if "text/html" in data:
        # One line, so that Markdown leaves it alone; the frame holds its own line ends as references.
        return data["text/html"].replace("\n", "&#10;")
    if "image/png" in data:
        return f'<img alt="output" src="data:image/png;base64,{data["image/png"].strip()}">'
    return f"```text\n{data['text/plain']}\n```" if "text/plain" in data else ""
