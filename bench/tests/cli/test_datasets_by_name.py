"""``--dataset`` of ``explain``, and wrong uses of the commands of research."""

import json

import pytest

QUICK = ("--set", "epochs=4", "--set", "num_contexts=4", "--max-nodes", "3", "--quiet")
WRONG = [
    (["explain", "--dataset", "tree-cycle", "--index", "1"], 2, "Did you mean 'tree-cycles'"),
    (["explain", "--dataset", "karat", "--index", "1"], 2, "Did you mean 'karate'"),
    (["explain", "--dataset", "tree-cycles", "--gnn", "publish", "--index", "1"], 2, "Did you mean 'published'"),
    (["datasets", "--name", "mutagen"], 2, "Did you mean 'mutagenicity'"),
    (["evaluate"], 2, "--dataset"),
    (["demo", "--out", "my_models.py"], 1, "cannot be made"),
]


@pytest.mark.parametrize(("words", "code", "said"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_wrong_uses(workspace, invoke, words, code, said):
    (workspace / "my_models.py").write_text("")
    result = invoke(*words)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_the_published_gnn_of_a_dataset(invoke, workspace, published_data):
    result = invoke("explain", "--dataset", "tree-cycles", "--index", "511", "--json", "--no-report", *QUICK)
    assert result.exit_code == 0, result.output
    (entry,) = json.loads(result.stdout)["instances"]
    assert entry["subgraphs"][0]["nodes"][0] == 511


def test_molecules_of_the_published_gnn_are_drawn_as_molecules(invoke, workspace, published_data):
    pytest.importorskip("rdkit")
    (workspace / "molecules.csv").write_text("id,smiles\n1,O=[N+]([O-])c1ccccc1\n")
    own = invoke("explain", "--dataset", "mutagenicity", "--smiles", "molecules.csv", "--out", "own", *QUICK)
    assert own.exit_code == 0, own.output
    theirs = invoke("explain", "--dataset", "mutagenicity", "--index", "0", "--out", "theirs", *QUICK)
    assert theirs.exit_code == 0, theirs.output
    assert "mutagen" in theirs.stdout
