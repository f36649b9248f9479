"""What the documents say is so: Python blocks run, links lead somewhere, commands, settings and signatures exist."""

import dataclasses
import importlib
import inspect
import re
import shlex
from pathlib import Path

import pytest
import typer

from gflowbench.explainers import registry
from gflowexplainer.cli.application import app
from gflowexplainer.settings import PRESETS, Settings

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
        if target.startswith("http"):
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
    text = (ROOT / "docs" / "command_line.md").read_text()
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
    text = (ROOT / "docs" / "choosing.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, re.MULTILINE))
    assert listed == {field.name: repr(field.default).replace("'", '"') for field in dataclasses.fields(Settings)}
    for name in PRESETS:
        assert f"`{name}`" in text


def signature(thing):
    """Writes a signature without types, as the page of the API does."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(thing).parameters.items()
        if name not in ("self", "cls")
    ]
    text = str(inspect.Signature(parameters))
    return text.replace("<factory>", "...")


def entries():
    """Every name on the page of the API: its module, its dotted name and its signature ('' if it has none)."""
    text = (ROOT / "docs" / "api.md").read_text()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        module = re.match(r"`([\w.]+)`", section).group(1)
        for name, given in re.findall(r"^- `([\w.]+)(\(.*\))?`:", section, re.MULTILINE):
            yield module, name, given


@pytest.mark.parametrize(("module", "name", "given"), [pytest.param(*e, id=e[1]) for e in entries()])
def test_signatures_are_right(module, name, given):
    found = importlib.import_module(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
    if isinstance(found, classmethod | staticmethod):
        found = found.__func__
    if isinstance(found, property) or (inspect.isclass(found) and issubclass(found, Exception)):
        assert given == ""
    else:
        assert given == signature(found)


def test_no_public_name_is_missing():
    listed = {(module, name) for module, name, _ in entries()}
    for module in dict.fromkeys(module for module, _ in listed):
        names = getattr(importlib.import_module(module), "__all__", ())
        missing = {
            name for name in names if name != "__version__" and not any(n.split(".")[0] == name for _, n in listed)
        }
        assert not missing, module
    for module, owner in {(module, name.split(".")[0]) for module, name in listed if "." in name}:
        found = getattr(importlib.import_module(module), owner)
        public = {
            name
            for name, value in vars(found).items()
            if not name.startswith("_") and (callable(value) or isinstance(value, property | classmethod))
        }
        assert {f"{owner}.{name}" for name in public} <= {name for _, name in listed}
