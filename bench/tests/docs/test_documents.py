"""What the documents say is so: Python blocks run, links lead somewhere, commands exist, and the site builds."""

import dataclasses
import enum
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gflowbench.explainers import registry
from gflowexplainer.cli.application import app
from gflowexplainer.settings import PRESETS, Settings

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "docs" / "api" / "index.md"]
COMMANDS = typer.main.get_command(app).commands


def blocks(page):
    return [
        text
        for text in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        # A block that only shows an interface ends its functions in "..." and has nothing to run.
        if "..." not in text
    ]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))  # what a page registers goes with it
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, text in enumerate(blocks(page)):
        before = dict(names)
        exec(compile(text, f"{page.name}, block {number}", "exec"), names)
        assert names != before or "print" in text, f"block {number} leaves nothing behind"


def anchors(page):
    """The anchors of a page's headings, as they are made from them on the web."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if target.startswith(("http", "notebooks/")):  # notebooks are made into pages when the site is built
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), f"{target}#{anchor}"


def test_the_readme_is_short_and_has_a_place_for_results():
    text = (ROOT / "README.md").read_text()
    (code,) = blocks(ROOT / "README.md")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 12
    assert text.index("<!-- table 1 of results/accuracy/results.md -->") < text.index("<!-- end of table -->")


def commands(page):
    """Every line of a page that calls the program, as words."""
    found = re.findall(r"^gflowexplainer .*$", page.read_text(), re.MULTILINE)
    found += re.findall(r"`(gflowexplainer [a-z]+ --[^`]*)`", page.read_text())
    return [shlex.split(line, comments=True)[1:] for line in found]


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda page: page.name)
def test_commands_and_their_options_exist(page):
    for name, *words in commands(page):
        # Reads the words as the program would, without doing anything; a wrong one is an exception.
        context = COMMANDS[name].make_context(name, list(words))
        given = {word for word in words if word.startswith("--")}
        assert not context.args, words
        assert len(given) <= sum(str(context.get_parameter_source(p)).endswith("COMMANDLINE") for p in context.params)


def test_the_page_of_the_command_line_names_every_command_and_option():
    text = "".join((ROOT / "docs" / name).read_text() for name in ("command_line.md", "research_commands.md"))
    known = {
        option
        for command in COMMANDS.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert named - known - {"--help"} == set()
    assert known - named == set()
    assert {name for name in COMMANDS if f"| `{name}` |" in text} == set(COMMANDS)


def test_every_setting_is_listed_with_its_default():
    text = (ROOT / "docs" / "all_settings.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, re.MULTILINE))
    assert listed == {field.name: repr(field.default).replace("'", '"') for field in dataclasses.fields(Settings)}
    for name in PRESETS:
        assert f"`{name}`" in text


API = sorted((ROOT / "docs" / "api").glob("*.md"))


def listed():
    """Every dotted name that a page of the API generates."""
    return [name for page in API for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)]


def resolved(name):
    """The object of a dotted name: a module, or what a module holds."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


@pytest.mark.parametrize("name", listed())
def test_generated_pages_have_something_to_say(name):
    found = resolved(name)
    assert found.__doc__, name
    if not inspect.isclass(found):
        return
    for member, value in vars(found).items():
        public = not member.startswith("_") and (callable(value) or isinstance(value, property | classmethod))
        assert not public or inspect.getdoc(getattr(found, member)) or issubclass(found, enum.Enum), f"{name}.{member}"


def test_no_public_name_is_missing():
    there = set(listed())
    for module in ("gflowexplainer", "gflowexplainer.report", "gflowexplainer.sources", "gflowexplainer.bulk"):
        for name in importlib.import_module(module).__all__:
            assert name == "__version__" or f"{module}.{name}" in there, f"{module}.{name}"
    assert {"gflowexplainer.errors", "gflowexplainer.testing", "gflowexplainer.settings.Settings"} <= there


USER = ("index", "quickstart", "data", "your_model", "molecules", "large_graphs", "many", "reading")
MOST_WORDS = 900


@pytest.mark.parametrize("name", USER)
def test_a_user_page_fits_on_two_screens(name):
    text = (ROOT / "docs" / f"{name}.md").read_text()
    assert len(text.split()) <= MOST_WORDS
    assert text.count("\n## ") <= 8


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GFLOWEXPLAINER_DOCS": "quick", "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "api" / "explainer.html").read_text()
    assert "certificate_limit" in page
    assert not re.search(r":(?:class|meth|func|mod):", page)  # roles of Sphinx are understood
    assert (tmp_path / "site" / "results" / "accuracy" / "results.html").is_file()
