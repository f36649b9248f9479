from gflowbench.models import load_weights
from gflowbench.models.__main__ import main


def test_train_writes_one_file_a_seed(tmp_path, capsys):
    out = tmp_path / "gnn{seed}.safetensors"
    asked = ["train", "--dataset", "tree-cycles", "--source", "generated", "--model", "gin", "--quiet"]
    assert main([*asked, "--seed", "0", "1", "--epochs", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "tree-cycles (generated) gin seed 1: train 0." in printed
    assert "mean and standard deviation: train 0." in printed
    for seed in (0, 1):
        assert load_weights(tmp_path / f"gnn{seed}.safetensors").architecture.model == "gin"


def test_accuracy_prints_both(reference, capsys):
    assert main(["accuracy", "--dataset", "tree-cycles"]) == 0
    assert "0.942529 (656/696) | 0.942529" in capsys.readouterr().out
