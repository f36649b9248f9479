"""One identity: what is stored is of one model, one set of tensors, one index, one set of settings."""

import ast
import os
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch_geometric.nn import APPNP

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.identity import (
    code_fingerprint,
    content_digest,
    differences,
    identity_of,
    model_fingerprint,
)
from gflowexplainer.testing import GraphModel, NodeModel, cycle, house, random_graph

QUICK = {"preset": "context", "max_nodes": 3, "epochs": 4, "num_contexts": 2, "batch_size": 2}


def weighted_graph():
    graph = random_graph(10)
    graph.edge_weight = torch.rand(graph.edge_index.size(1), generator=torch.Generator().manual_seed(1))
    return graph


def interrupted(folder, graph, index=(0, 1, 2), **more):
    """Begins a fit and leaves it after two updates, as an interrupt does."""

    def stop(trainer, record):
        if record["iteration"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GFlowExplainer(**QUICK).fit(
            NodeModel(), graph, list(index), folder=folder, progress=False, callback=stop, **more
        )


def changed(graph, name):
    other = graph.clone()
    if name == "edge_index":
        other.edge_index = other.edge_index.flip(1)
        other.edge_weight = other.edge_weight.flip(0)
    else:
        other[name] = other[name] * 1.01
    return other


@pytest.mark.parametrize("finished", [False, True])
def test_a_folder_refuses_other_inputs_and_says_which(tmp_path, finished):
    graph, index, quiet = weighted_graph(), [0, 1, 2], {"folder": tmp_path, "progress": False}
    if finished:
        GFlowExplainer(**QUICK).fit(NodeModel(), graph, index, **quiet)
    else:
        interrupted(tmp_path, graph)
    others = {
        "'x' differs": (QUICK, NodeModel(), changed(graph, "x"), index, {}),
        "'edge_weight' differs": (QUICK, NodeModel(), changed(graph, "edge_weight"), index, {}),
        "'edge_index' differs": (QUICK, NodeModel(), changed(graph, "edge_index"), index, {}),
        "'index' differs": (QUICK, NodeModel(), graph, [2, 1, 0], {}),
        "'target' differs": (QUICK, NodeModel(), graph, index, {"target": [0, 0, 0]}),
        "'model' differs": (QUICK, NodeModel(seed=1), graph, index, {}),
        "max_nodes: '3' there, '4' here": ({**QUICK, "max_nodes": 4}, NodeModel(), graph, index, {}),
    }
    for said, (settings, model, data, which, more) in others.items():
        with pytest.raises(CheckpointError, match=said):
            GFlowExplainer(**settings).fit(model, data, which, **more, **quiet)


def test_graphs_in_another_order_are_refused(tmp_path):
    graphs = [house(), cycle(6)]
    for _ in range(2):
        GFlowExplainer(**QUICK).fit(GraphModel(), graphs, folder=tmp_path, progress=False)
    with pytest.raises(CheckpointError, match="'edge_index' differs; 'x' differs"):
        GFlowExplainer(**QUICK).fit(GraphModel(), graphs[::-1], folder=tmp_path, progress=False)


@pytest.mark.parametrize("overwrite", [False, True])
def test_going_on_and_beginning_anew_come_to_the_weights_of_a_new_folder(tmp_path, overwrite):
    graph = weighted_graph()
    interrupted(tmp_path, graph)
    graph = changed(graph, "x") if overwrite else graph
    again = GFlowExplainer(**QUICK).fit(
        NodeModel(), graph, [0, 1, 2], folder=tmp_path, overwrite=overwrite, progress=False
    )
    fresh = GFlowExplainer(**QUICK).fit(NodeModel(), graph, [0, 1, 2], progress=False)
    for name, value in fresh._fitted.sampler.network.items():
        assert torch.equal(value, again._fitted.sampler.network[name])


def test_the_name_of_a_model_sees_weights_buffers_names_shapes_and_types():
    def batch_norm():
        return nn.Sequential(nn.BatchNorm1d(2))

    changed_weight, changed_buffer, renamed, odd = batch_norm(), batch_norm(), nn.Module(), nn.Module()
    with torch.no_grad():
        changed_weight[0].weight[1] += 1e-6
        changed_buffer[0].running_mean[0] = 1e-6
    renamed.second = nn.BatchNorm1d(2)
    for number, tensor in enumerate((torch.empty(0, 4), torch.tensor([True]), torch.ones(2, dtype=torch.bfloat16))):
        odd.register_buffer(f"buffer_{number}", tensor)
    odd.register_buffer("turned", torch.arange(6.0).view(2, 3).t())
    models = [batch_norm(), changed_weight, changed_buffer, batch_norm().double(), renamed, nn.BatchNorm1d(1), odd]
    assert len({model_fingerprint(model) for model in models}) == len(models)
    assert model_fingerprint(NodeModel(seed=1)) == model_fingerprint(NodeModel(seed=1))


class WithState(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.state = state

    def get_extra_state(self):
        return self.state


def test_extra_state_sparse_and_passing_buffers_and_layers_without_weights_count():
    models = [WithState({"a": [1, 2]}), WithState({"a": [1, 3]}), WithState(None), APPNP(2, 0.1), APPNP(2, 0.2)]
    for value in (1.0, 2.0):
        for persistent in (True, False):
            model = nn.Module()
            model.register_buffer("table", (value * torch.eye(3)).to_sparse(), persistent=persistent)
            models.append(model)
    names = [model_fingerprint(model) for model in models]
    assert len(set(names)) == len(names) - 2  # persistent or not, the same buffer is the same


def test_counters_of_a_users_model_do_not_count():
    class Counting(NodeModel):
        calls = 0

        def forward(self, x, edge_index):
            self.calls += 1
            return super().forward(x, edge_index)

    model, graph = Counting(), house()
    before = model_fingerprint(model)
    model(graph.x, graph.edge_index)
    assert model_fingerprint(model) == before


def test_the_code_of_a_class_counts_and_comments_do_not():
    def build(body):
        space = {"nn": nn}
        exec(f"class Model(nn.Module):\n    def forward(self, x):\n        {body}\n", space)
        return space["Model"]()

    names = [code_fingerprint(build(body)) for body in ("return x", "return x  # the same", "return 2 * x")]
    assert names[0] == names[1] != names[2]


def test_names_do_not_depend_on_the_process():
    """Sets of words lie in another order in every process, so that two orders of one set are compared at least."""
    name = (
        "[identity_of(NodeModel(), [{'x': g.x, 'edge_index': g.edge_index, 'more': {'b': {*'abcdefgh'}, 'a': None}}]),"
        "list({*'abcdefgh'})]"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    code = (
        "from gflowexplainer.storage.identity import identity_of; from gflowexplainer.testing import NodeModel, house;"
        f"g = house(); print({name})"
    )
    there = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    here = eval(name, {"identity_of": identity_of, "NodeModel": NodeModel, "g": house()})
    theirs = ast.literal_eval(there)
    assert theirs[1] != here[1]
    assert theirs[0] == here[0]


def test_every_byte_counts():
    value = torch.arange(1000.0)
    names = {content_digest(value)}
    for place in (0, 17, 500, 999):
        other = value.clone()
        other[place] += 1
        names.add(content_digest(other))
    assert len(names) == 5


def test_what_differs_is_said():
    graph = house()
    given = {"x": graph.x, "edge_index": graph.edge_index}
    here = identity_of(NodeModel(), [given], index=[1])
    assert differences(here, here) == []
    there = identity_of(NodeModel(), [given | {"edge_weight": torch.ones(12)}], index=[1])
    assert differences(there, here) == ["'edge_weight' is only given there"]
    assert "another version" in differences(None, here)[0]


def test_one_entry_with_a_stride_has_a_name():
    assert content_digest(torch.arange(60)[::100]) == content_digest(torch.tensor([0]))
