import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from gflowexplainer.errors import CheckpointError, ConfigError, ModelError
from gflowexplainer.sources import fill_weights, load_model
from gflowexplainer.testing import NodeModel

MODULE = """
import torch
from gflowexplainer.testing import NodeModel

ready = NodeModel(seed=5)
number = 3

def build():
    return NodeModel(seed=1)

def sized(width):
    return NodeModel(width)

def pair():
    return NodeModel(), 0

def broken():
    raise ValueError("no data today")

class Own(NodeModel):
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_models.py").write_text(MODULE)
    yield tmp_path
    for name in ("my_models", "exits", "wrong", "needs"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("name", "seed"), [("build", 1), ("ready", 5), ("Own", 0)])
def test_functions_instances_and_classes(folder, name, seed):
    model = load_model(f"my_models:{name}")
    wanted = NodeModel(seed=seed)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), wanted.parameters(), strict=True))


def test_a_file_anywhere(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "other_models.py").write_text(MODULE)
    assert isinstance(load_model("deep/other_models.py:build"), NodeModel)
    assert isinstance(load_model("gflowexplainer.testing:NodeModel"), NodeModel)


@pytest.mark.parametrize(
    ("reference", "kind", "said"),
    [
        ("my_models", ConfigError, "takes package.module:name"),
        (":build", ConfigError, "takes package.module:name"),
        ("my_model:build", ConfigError, "Did you mean 'my_models'"),
        ("nowhere.at.all:build", ConfigError, "no module 'nowhere.at.all'"),
        ("nowhere.py:build", ConfigError, "no file 'nowhere.py'"),
        ("my_models:biuld", ConfigError, "Did you mean 'build'"),
        ("my_models:number", ModelError, "is a int"),
        ("my_models:sized", ModelError, "required positional argument: 'width'"),
        ("my_models:pair", ModelError, "returned a tuple"),
        ("my_models:broken", ModelError, r"ValueError: no data today \(my_models.py, line 18\)"),
        ("torch.nn:Linear", ModelError, "required positional arguments"),
        ("exits:build", ModelError, "SystemExit: 3"),
        ("wrong:build", ModelError, "SyntaxError"),
        ("needs:build", ModelError, "No module named 'not_installed_package'"),
    ],
)
def test_mistakes(folder, reference, kind, said):
    (folder / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "wrong.py").write_text("def build(:\n")
    (folder / "needs.py").write_text("import not_installed_package\n")
    with pytest.raises(kind, match=said):
        load_model(reference)


def test_a_file_beside_the_model_does_not_stand_in_for_a_package(folder):
    (folder / "wave.py").write_text("raise SystemExit('planted')\n")
    load_model("my_models:build")
    load_model(str(folder / "my_models.py") + ":build")
    assert importlib.util.find_spec("wave").origin != str(folder / "wave.py")
    assert sys.path[-1] == str(folder)


@pytest.mark.parametrize("kind", ["safetensors", "pt", "wrapped", "parallel"])
def test_weights_arrive(tmp_path, kind):
    source, target = NodeModel(seed=1), NodeModel(seed=2)
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pt")
    weights = source.state_dict()
    if kind == "safetensors":
        save_file(weights, path)
    elif kind == "parallel":
        torch.save(nn.DataParallel(source).state_dict(), path)
    else:
        torch.save({"epoch": 3, "state_dict": weights} if kind == "wrapped" else weights, path)
    fill_weights(target, path)
    assert all(torch.equal(a, b) for a, b in zip(source.parameters(), target.parameters(), strict=True))


def test_weights_that_do_not_fit_are_named_and_change_nothing(tmp_path):
    model = NodeModel(3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weights = NodeModel(4).state_dict()
    weights["extra"] = weights.pop("second.bias")
    save_file(weights, tmp_path / "w.safetensors")
    with pytest.raises(CheckpointError) as caught:
        fill_weights(model, tmp_path / "w.safetensors")
    said = str(caught.value)
    assert "missing: second.bias" in said
    assert "unexpected: extra" in said
    assert "first.lin.weight ((8, 4) there, (8, 3) in the model)" in said
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_unreadable_weights(tmp_path):
    model = NodeModel()
    with pytest.raises(CheckpointError, match="no file"):
        fill_weights(model, tmp_path / "none.pt")
    (tmp_path / "w.pt").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError):
        fill_weights(model, tmp_path / "w.pt")
    (tmp_path / "w.safetensors").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="damaged"):
        fill_weights(model, tmp_path / "w.safetensors")
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(CheckpointError, match="more than tensors"):
        fill_weights(model, tmp_path / "whole.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(CheckpointError, match="no state dict"):
        fill_weights(model, Path(tmp_path / "list.pt"))
    (tmp_path / "w.h5").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"safetensors, \.pt or \.pth"):
        fill_weights(model, tmp_path / "w.h5")
