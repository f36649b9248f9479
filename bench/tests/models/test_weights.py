import pytest
import torch

from gflowbench.models import MODELS, Architecture, build, load_weights, save_weights
from gflowexplainer.errors import CheckpointError
from gflowexplainer.testing import star


def made(model="gcn", task="graph", **settings):
    return build(Architecture(model=model, task=task, in_channels=4, num_classes=3, **settings))


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("model", MODELS)
def test_round_trip(tmp_path, model, task):
    before = made(model, task).eval()
    after = load_weights(save_weights(tmp_path / "new" / "gnn.safetensors", before))
    assert after.architecture == before.architecture
    assert not after.training
    data = star(width=4)
    torch.testing.assert_close(after(data.x, data.edge_index), before(data.x, data.edge_index), rtol=0, atol=0)


def test_what_cannot_be_loaded_is_refused_by_name(tmp_path):
    path = save_weights(tmp_path / "whole", made())
    with pytest.raises(CheckpointError, match=r"no file '.*absent'"):
        load_weights(tmp_path / "absent")
    for name, content in (("text", b"hello"), ("empty", b""), ("cut", path.read_bytes()[:-40])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match=f"{name}' is no safetensors file, or is damaged"):
            load_weights(tmp_path / name)
