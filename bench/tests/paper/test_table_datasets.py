import pytest

from gflowbench.datasets import load, reference_folder
from gflowbench.paper import Results, Scope
from gflowbench.paper.table_datasets import EXPERIMENT, count, plan


def test_counts_are_those_of_the_graph():
    found = count("tree-cycles", "generated")
    graph = load("tree-cycles", "generated", seed=0).data
    assert (found["nodes"], found["edges"]) == (graph.num_nodes, graph.num_edges)
    assert "provenance" in found


def test_without_the_files_only_generated_data_is_counted(no_reference):
    assert [step.name for step in plan(Scope())] == [
        f"{name}, generated" for name in ("ba-shapes", "ba-community", "tree-cycles", "tree-grid", "ba-2motifs")
    ]


def test_verdicts_name_what_differs():
    right = {"graphs": 1, "nodes": 700, "edges": 4110, "classes": 4}
    wrong = {"graphs": 1, "nodes": 871, "edges": 1942, "classes": 2}
    rest = {"features": 10, "self_loops": 0, "motifs": 60, "motif_share": 0.25, "evaluated": 60}
    values = {"ba-shapes, published": right | rest, "tree-cycles, published": wrong | rest}
    outcome = EXPERIMENT.present(Results(Scope(), values))
    files, generated = outcome.verdicts
    assert files.verdict == "holds in part"
    assert files.evidence == "BA-Shapes agrees, Tree-Cycles 1,942 edges (paper 1,950)."
    assert generated.verdict == "cannot be told"
    assert ("Tree-Cycles, edges", "1950", "1942", "-8") in outcome.tables[0].rows
    assert any("the published file has 60" in note for note in outcome.notes)


def test_the_published_files_give_what_the_protocol_says():
    if reference_folder() is None:
        pytest.skip("the published files are not there")
    assert count("tree-grid", "published")["edges"] == 3130
    assert count("tree-cycles", "published")["edges"] == 1942
