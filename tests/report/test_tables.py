import io
import math

from rich.console import Console

from gflowexplainer.report.tables import Table, join, number

TABLE = Table("A & B", ("explainer", "50 %"), (("one_two", "0.500 ± 0.100"), ("a|b", "-")))


def test_numbers():
    assert number(0.71249, 0.004) == "0.712 ± 0.004"
    assert number(0.5, math.nan) == "0.500"
    assert number(None) == number(math.nan) == "-"


def test_markdown():
    assert TABLE.to_markdown().splitlines() == [
        "**A & B**",
        "",
        "| explainer | 50 % |",
        "| --- | ---: |",
        "| one_two | 0.500 ± 0.100 |",
        r"| a\|b | - |",
    ]


def test_latex_escapes_what_latex_reads():
    text = TABLE.to_latex()
    assert r"\caption{A \& B}" in text
    assert r"explainer & 50 \% \\" in text
    assert r"one\_two & 0.500 $\pm$ 0.100 \\" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2


def test_latex_takes_accents_and_tildes():
    text = Table("x^2", ("a~b",), (("~/x^y",),)).to_latex()
    assert r"\caption{x\textasciicircum{}2}" in text
    assert r"\textasciitilde{}/x\textasciicircum{}y" in text


def test_rich_shows_brackets_as_they_are():
    out = io.StringIO()
    table = Table("[title]", ("[x]",), (("[red]",),))
    Console(file=out, width=80).print(table.to_rich())
    assert all(text in out.getvalue() for text in ("[title]", "[x]", "[red]"))


def test_notes_become_comments_in_latex():
    assert join([TABLE], "latex", ["a note"]).endswith("% a note\n")
    assert join([TABLE], "markdown", ["a note"]).endswith("- a note\n")
