"""Wrong uses as a new user makes them: each is one clear message, the right exit code, never a traceback."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import HeteroData

from gflowexplainer.testing import GraphModel, house

NODE = ["explain", "--model", "my_models:build", "--weights", "node.pt", "--data", "graph.safetensors"]
GRAPH = ["explain", "--model", "my_models:graph_model", "--weights", "graph.pt", "--data", "graphs.safetensors"]
LINKS = [*NODE[1:], "--edge-label-index", "0:4"]
ONE = [*NODE, "--index", "3"]

WRONG = [
    # commands and options
    (["explian"], 2, "Did you mean 'explain'"),
    (["explain", "--modle", "my_models:build"], 2, "Possible options: --mode, --model"),
    (["explain"], 2, "Which model?"),
    (["explain", "--model", "my_models:build"], 2, "Which graphs?"),
    ([*ONE, "--all"], 2, "exclude each other"),
    ([*ONE, "--smiles", "m.csv"], 2, "exclude each other"),
    (["explain", "--dataset", "tree-cycles", "--weights", "node.pt", "--index", "1"], 2, "needs '--model'"),
    ([*ONE, "--gnn", "published"], 2, "use it with --dataset"),
    ([*ONE, "--atoms", "C,N"], 2, "use it with --smiles"),
    # the model
    (["explain", "--model", "my_models", "--data", "graph.safetensors", "--index", "3"], 2, "package.module:name"),
    (["explain", "--model", "my_model:build", "--data", "graph.safetensors", "--index", "3"], 2, "'my_models'"),
    (
        ["explain", "--model", "my_models:biuld", "--data", "graph.safetensors", "--index", "3"],
        2,
        "Did you mean 'build'",
    ),
    (
        ["explain", "--model", "my_models:sized", "--data", "graph.safetensors", "--index", "3"],
        1,
        "required positional argument",
    ),
    (["explain", "--model", "my_models:nothing", "--data", "graph.safetensors", "--index", "3"], 1, "a NoneType"),
    (["explain", "--model", "my_models:Failing", "--data", "graph.safetensors", "--index", "3"], 1, "speed"),
    (
        ["explain", "--model", "my_models:edge_model", "--data", "graph.safetensors", "--task-level", "graph"],
        1,
        "edge_attr",
    ),
    # the weights
    ([*NODE[:4], "none.pt", *NODE[5:], "--index", "3"], 1, "no file 'none.pt'"),
    ([*NODE[:4], "graph.pt", *NODE[5:], "--index", "3"], 1, "unexpected: readout"),
    ([*NODE[:4], "damaged.safetensors", *NODE[5:], "--index", "3"], 1, "damaged"),
    ([*NODE[:4], "whole.pt", *NODE[5:], "--index", "3"], 1, "more than tensors"),
    # the graphs
    ([*NODE[:6], "none.npz", "--index", "3"], 1, "no file 'none.npz'"),
    ([*NODE[:6], "my_models.py", "--index", "3"], 2, "are read from"),
    ([*NODE[:6], "wrong.json", "--index", "0"], 1, "Did you mean 'features'"),
    ([*NODE[:6], "narrow.safetensors", "--index", "0"], 1, ""),
    ([*NODE[:6], "nan.safetensors", "--index", "0"], 1, "NaN or infinity"),
    ([*NODE[:6], "empty.safetensors", "--all", "--task-level", "node"], 1, "no nodes"),
    ([*NODE[:6], "hetero.pt", "--index", "0"], 1, "save_graphs"),
    ([*NODE[:6], "graphs.safetensors", "--index", "0", "--task-level", "node"], 2, "there are 3"),
    # what to explain
    (NODE, 1, "Is it really a graph-level model?"),
    ([*NODE, "--task-level", "node"], 2, "--index 0,1,2, or use --all"),
    ([*NODE, "--index", "99"], 2, "the graph has 12 nodes"),
    ([*NODE, "--index", "-1"], 2, "whole numbers from 0 on"),
    ([*NODE, "--index", "3.5"], 2, "whole numbers from 0 on"),
    ([*NODE, "--index", "three"], 2, "whole numbers from 0 on"),
    ([*NODE, "--index", "9-3"], 2, "Write 3-9"),
    ([*NODE, "--index", "0-9999999"], 2, "Use --all for all"),
    ([*NODE, "--index", "9" * 5000], 2, "whole numbers from 0 on"),
    ([*NODE, "--index", ",".join(f"{k}000000-{k}999999" for k in range(1, 9))], 2, "Use --all for all"),
    ([*ONE, "--target", "9" * 30], 2, "a class, which is a whole number"),
    ([*NODE, "--index", ""], 2, "whole numbers from 0 on"),
    ([*GRAPH, "--index", "7"], 2, "there are 3 graphs"),
    ([*ONE, "--target", "9"], 1, "9"),
    ([*ONE, "--target", "0.5"], 2, "a class, which is a whole number"),
    ([*ONE, "--target", "0,1"], 2, "2 values for 1 instances"),
    ([*ONE, "--target", "labels"], 2, "'y' is missing"),
    # how
    ([*ONE, "--mode", "multi"], 2, "Did you mean 'multiclass'"),
    ([*ONE, "--mode", "binary"], 1, "must return one column"),
    ([*ONE, "--mode", "regression"], 1, "one column (got 3). Of several outputs, explain one: adapt("),
    ([*ONE, "--task-level", "nodes"], 2, "Did you mean 'node'"),
    ([*ONE, "--return-type", "prob"], 2, "Did you mean 'probs'"),
    ([*ONE, "--return-type", "probs"], 1, ""),
    ([*ONE, "--mode", "regression", "--return-type", "probs"], 2, "'raw' values"),
    ([*ONE, "--preset", "papre"], 2, "Did you mean 'paper'"),
    ([*ONE, "--set", "reward=contexts"], 2, "Did you mean 'context'"),
    ([*ONE, "--set", "self=1"], 2, "cannot say that"),
    ([*ONE, "--set", "bta=3"], 2, "Did you mean 'beta'"),
    ([*ONE, "--set", "beta"], 2, "takes NAME=VALUE"),
    ([*ONE, "--set", "beta=-1"], 2, "positive number"),
    ([*ONE, "--set", "epochs=many"], 2, "whole number"),
    ([*ONE, "--set", "seed=1", "--seed", "2"], 2, "said twice"),
    ([*ONE, "--max-nodes", "0"], 2, "max-nodes"),
    ([*ONE, "--max-nodes", "few"], 2, "max-nodes"),
    ([*ONE, "--samples", "0"], 2, "samples"),
    ([*ONE, "--device", "gpu"], 2, "'cpu', 'cuda'"),
    ([*ONE, "--device", "cuda"], 2, "no GPU"),
    ([*ONE, "--explainer", "nowhere"], 1, "no checkpoint"),
    ([*ONE, "--explainer", "nowhere", "--max-nodes", "3"], 2, "cannot change an explainer that is fitted"),
    ([*ONE, "--out", "my_models.py"], 1, "cannot be made"),
    (["fit", *ONE[1:], "--set", "node_identities=true"], 2, "node_identities"),
    # the other commands
    (["bulk", *LINKS, "--explainer", "nowhere", "--out", "all"], 2, "explains nodes and graphs"),
    (["report", "nowhere"], 2, "does not exist"),
    (["report", "."], 2, "holds no run"),
    (["report"], 2, "RUN"),
]


@pytest.mark.parametrize(("words", "code", "said"), WRONG, ids=[" ".join(words)[:90] for words, _, _ in WRONG])
def test_wrong_uses(workspace, invoke, words, code, said):
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    _material(workspace)
    result = invoke(*words)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout == ""


def _material(folder):
    (folder / "damaged.safetensors").write_bytes(b"nonsense")
    torch.save(GraphModel(), folder / "whole.pt")
    (folder / "wrong.json").write_text(json.dumps({"edges": [[0, 1]], "feature": [[1.0]]}))
    edges = torch.tensor([[0, 1], [1, 0]])
    save_file({"x": torch.ones(2, 7), "edge_index": edges}, folder / "narrow.safetensors")
    save_file({"x": torch.full((2, 3), float("nan")), "edge_index": edges}, folder / "nan.safetensors")
    save_file({"x": torch.ones(0, 3), "edge_index": edges[:, :0].contiguous()}, folder / "empty.safetensors")
    hetero = HeteroData()
    hetero["a"].x = torch.ones(2, 3)
    torch.save(hetero, folder / "hetero.pt")


def test_a_foreign_explainer_a_half_trained_one_and_another_question(workspace, invoke):
    from gflowexplainer.explainer import GFlowExplainer
    from gflowexplainer.testing import NodeModel
    from gflowexplainer.training.checkpoint import CHECKPOINT

    GFlowExplainer(max_nodes=2, epochs=1, num_contexts=2).fit(NodeModel(seed=8), house(), [0], progress=False).save(
        "far"
    )
    foreign = invoke(*ONE, "--explainer", "far")
    assert foreign.exit_code == 1
    assert "fitted to another model" in foreign.stderr
    (workspace / "half").mkdir()
    (workspace / "half" / CHECKPOINT).write_bytes(b"")
    half = invoke(*ONE, "--explainer", "half")
    assert half.exit_code == 1
    assert "was not finished" in half.stderr
    quick = ["--set", "epochs=2", "--max-nodes", "2", "--no-report", "--quiet", "--out", "run"]
    assert invoke(*ONE, *quick).exit_code == 0
    other = invoke(*NODE, "--index", "4", *quick)
    assert other.exit_code == 2
    assert "run of other inputs (index: '3' there, '4' here" in other.stderr
    again = invoke("fit", *ONE[1:], "--out", "run")
    assert again.exit_code == 2
    assert "holds a run of 'explain'" in again.stderr
