import json

import pytest
import torch

from gflowexplainer.errors import CheckpointError, ConfigError, ModelError
from gflowexplainer.flow.exact import enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.flow.objectives import OBJECTIVES
from gflowexplainer.instances import Instances
from gflowexplainer.rewards import Predictor
from gflowexplainer.rewards.model import embeddings
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, random_graph
from gflowexplainer.training import CHECKPOINT, METRICS, Trainer


def node_trainer(index=(0, 3, 5), model=None, **settings):
    graph = random_graph(12, 0.15, seed=1)
    model = NodeModel(seed=1) if model is None else model
    instances = Instances.around_nodes(graph.x, graph.edge_index, list(index), 2)
    embedding = embeddings(model, graph.x, graph.edge_index)[instances.node_id]
    small = {"max_nodes": 4, "epochs": 6, "rollouts": 4, "beta": 4.0, "num_contexts": 6, "hidden": 16}
    return Trainer(Predictor(model), instances, Settings(**{**small, **settings}), embedding=embedding)


def graph_trainer(**settings):
    graphs = [random_graph(8, 0.15, seed=seed) for seed in range(5)]
    model = GraphModel()
    instances = Instances.of_graphs(graphs)
    embedding = embeddings(model, instances.x, instances.edge_index, {"batch": instances.owner})
    small = {"max_nodes": 3, "epochs": 4, "rollouts": 4, "beta": 4.0, "num_contexts": 4, "hidden": 16, "batch_size": 2}
    predictor = Predictor(model, level="graph")
    return Trainer(predictor, instances, Settings(**{**small, **settings}), embedding=embedding)


def distance(trainer):
    instances = trainer.instances
    start = None if instances.level == "graph" else instances.center
    enumeration = enumerate_subgraphs(instances, torch.arange(len(instances)), start, trainer.settings.max_nodes)
    states = enumeration.states
    rewarded = torch.nonzero(states.size > 0).flatten()
    reward = torch.zeros(len(states))
    reward[rewarded] = trainer.reward.log_reward(states.subgraphs[rewarded], states.can_grow[rewarded])
    target = enumeration.normalize(reward.double())
    policy = trainer.network.policy
    reached = terminal_distribution(enumeration, policy, policy.encode(instances, trainer.inputs.features))
    return float(total_variation(enumeration, reached, target).mean())


def weights(trainer):
    return torch.cat([value.flatten().double() for value in trainer.network.state_dict().values()])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_trains_on_nodes(objective):
    trainer = node_trainer(objective=objective)
    before = weights(trainer)
    trainer.run(progress=False)
    assert trainer.iteration == trainer.num_iterations
    assert torch.isfinite(weights(trainer)).all()
    assert not torch.equal(before, weights(trainer))


@pytest.mark.parametrize("objective", ["flow_matching", "log_partition_variance", "trajectory_balance"])
def test_explanations_of_graphs_may_start_anywhere(objective):
    trainer = graph_trainer(objective=objective)
    trainer.run(progress=False)
    assert trainer.iteration == 4 * 3
    every = torch.arange(5)
    first = trainer.network.sample(trainer.inputs, every.repeat_interleave(20), 0).subgraphs.members[:, 0]
    assert torch.unique(first).numel() > 5


@pytest.mark.parametrize("objective", ["detailed_balance", "subtrajectory_balance"])
def test_objectives_that_need_a_start_say_so(objective):
    with pytest.raises(ConfigError, match="log_partition_variance"):
        graph_trainer(objective=objective)


def test_a_locator_is_trained_in_turn():
    trainer = graph_trainer(start="locator", objective="detailed_balance")
    before = trainer.network.locator.mlp[0].weight.clone()
    records = []
    trainer.run(progress=False, callback=lambda _, record: records.append(dict(record)))
    assert sum("locator_loss" in record for record in records) == 4
    assert not torch.equal(before, trainer.network.locator.mlp[0].weight)
    starts = trainer.network.starts(trainer.inputs, torch.arange(5))
    assert torch.equal(trainer.instances.owner[starts], torch.arange(5))


def test_the_papers_preset_trains():
    settings = Settings.preset("paper", epochs=2, max_nodes=5).to_dict()
    node_trainer(**settings).run(progress=False)
    graph_trainer(**settings).run(progress=False)


@pytest.mark.parametrize("objective", ["flow_matching", "detailed_balance", "log_partition_variance"])
def test_one_instance_is_learned_to_its_exact_distribution(objective):
    one = {"index": [5], "node_identities": True, "hidden": 64, "epochs": 400, "rollouts": 32, "beta": 10.0}
    trainer = node_trainer(objective=objective, final_rate=0.01, **one)
    untrained = distance(trainer)
    trainer.run(progress=False)
    assert distance(trainer) < 0.03
    assert untrained > 0.2


@pytest.mark.parametrize("parents", ["sequence", "graph"])
def test_other_parent_rules_learn_another_distribution(parents):
    one = {"index": [5], "node_identities": True, "hidden": 64, "epochs": 400, "rollouts": 32, "beta": 10.0}
    trainer = node_trainer(parents=parents, final_rate=0.01, **one)
    trainer.run(progress=False)
    assert distance(trainer) > 0.08


def test_where_graphs_may_start_anywhere_the_distribution_is_learned_too():
    trainer = graph_trainer(node_identities=True, hidden=64, epochs=150, rollouts=32, batch_size=8, final_rate=0.01)
    trainer.run(progress=False)
    assert distance(trainer) < 0.05


def test_relative_beta_gives_log_rewards_of_known_spread():
    trainer = node_trainer(relative_beta=True, beta=2.0)
    assert not torch.equal(trainer.reward.spread, torch.ones(3))


def test_same_seed_same_weights_and_another_seed_others():
    one, two, other = (node_trainer(seed=seed).run(progress=False) for seed in (3, 3, 4))
    assert torch.equal(weights(one), weights(two))
    assert not torch.equal(weights(one), weights(other))


def test_training_leaves_global_random_state_and_model_alone():
    model = NodeModel(seed=1)
    model.train()
    state, before = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    node_trainer(model=model).run(progress=False)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("settings", [{}, {"replays": 2}, {"objective": "trajectory_balance"}, {"relative_beta": True}])
def test_resuming_comes_to_the_same_weights(tmp_path, settings):
    whole = node_trainer(**settings).run(progress=False)
    node_trainer(**settings).run(tmp_path, progress=False, iterations=2)
    resumed = node_trainer(**settings).run(tmp_path, progress=False)
    assert resumed.iteration == whole.iteration
    assert torch.equal(weights(whole), weights(resumed))
    lines = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(whole.iteration))


def test_resuming_with_a_locator_comes_to_the_same_weights(tmp_path):
    settings = {"start": "locator", "objective": "detailed_balance"}
    whole = graph_trainer(**settings).run(progress=False)
    graph_trainer(**settings).run(tmp_path, progress=False, iterations=5)
    assert torch.equal(weights(whole), weights(graph_trainer(**settings).run(tmp_path, progress=False)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_training_loses_nothing(tmp_path, error):
    def interrupt(trainer, _record):
        if trainer.iteration == 3:
            raise error

    with pytest.raises(error):
        node_trainer().run(tmp_path, progress=False, callback=interrupt)
    resumed = node_trainer().run(tmp_path, progress=False)
    assert torch.equal(weights(resumed), weights(node_trainer().run(progress=False)))


def test_a_model_that_fails_in_the_middle_leaves_a_checkpoint(tmp_path):
    class Failing(NodeModel):
        calls = 0

        def forward(self, x, edge_index, edge_weight=None):
            Failing.calls += 1
            if Failing.calls == 6:
                raise ValueError("out of order")
            return super().forward(x, edge_index, edge_weight)

    model = Failing(seed=1)
    with pytest.raises(ModelError, match="out of order"):
        node_trainer(model=model).run(tmp_path, progress=False)
    assert (tmp_path / CHECKPOINT).exists()
    resumed = node_trainer(model=model).run(tmp_path, progress=False)
    assert resumed.iteration == resumed.num_iterations


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match="another model"):
        node_trainer(model=NodeModel(seed=2)).run(tmp_path, progress=False)


def test_a_checkpoint_of_other_instances_is_refused(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match="other instances"):
        node_trainer(index=(1, 2)).run(tmp_path, progress=False)


def test_a_checkpoint_with_other_settings_says_which(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match=r"beta: 4.0 there, 5.0 here"):
        node_trainer(beta=5.0).run(tmp_path, progress=False)


@pytest.mark.parametrize("damage", ["cut", "foreign", "text"])
def test_a_damaged_checkpoint_is_refused_and_left_alone(tmp_path, damage):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    path = tmp_path / CHECKPOINT
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "foreign":
        from safetensors.torch import save_file

        save_file({"weight": torch.ones(2)}, path)
    else:
        path.write_text("not a checkpoint")
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=CHECKPOINT):
        node_trainer().run(tmp_path, progress=False)
    assert path.read_bytes() == before


def test_a_full_disk_is_a_typed_error_and_keeps_the_older_checkpoint(tmp_path, monkeypatch):
    import errno
    import os

    node_trainer().run(tmp_path, progress=False, iterations=1)
    before = (tmp_path / CHECKPOINT).read_bytes()

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        node_trainer().run(tmp_path, progress=False, iterations=1)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {CHECKPOINT, METRICS}


def test_embeddings_are_asked_for_where_they_are_needed():
    graph, model = random_graph(8), NodeModel()
    instances = Instances.around_nodes(graph.x, graph.edge_index, [0], 2)
    with pytest.raises(ConfigError, match="model_embeddings=False"):
        Trainer(Predictor(model), instances, Settings(epochs=1))
    Trainer(Predictor(model), instances, Settings(epochs=1, model_embeddings=False)).run(progress=False)
    with pytest.raises(ConfigError, match="regularised reward needs"):
        Trainer(Predictor(model), instances, Settings(reward="regularized", model_embeddings=False))


def test_an_instance_of_one_node_is_explained_by_itself():
    graph = random_graph(4)
    graph.x = torch.cat([graph.x, torch.ones(1, 3)])
    instances = Instances.around_nodes(graph.x, graph.edge_index, [4, 0], 2)
    model = NodeModel()
    embedding = embeddings(model, graph.x, graph.edge_index)[instances.node_id]
    trainer = Trainer(Predictor(model), instances, Settings(epochs=3, max_nodes=3), embedding=embedding)
    trainer.run(progress=False)
    alone = trainer.network.sample(trainer.inputs, torch.zeros(3, dtype=torch.long), 0).subgraphs
    assert alone.size.tolist() == [1, 1, 1]


@pytest.mark.parametrize("start", ["anywhere", "locator"])
def test_a_model_of_double_precision_is_trained_on(start):
    graphs = [random_graph(8, 0.15, seed=seed) for seed in range(3)]
    for graph in graphs:
        graph.x = graph.x.double()
    model, instances = GraphModel().double(), Instances.of_graphs(graphs)
    embedding = embeddings(model, instances.x, instances.edge_index, {"batch": instances.owner})
    settings = Settings(epochs=2, max_nodes=3, rollouts=2, num_contexts=2, hidden=8, start=start)
    trainer = Trainer(Predictor(model, level="graph"), instances, settings, embedding=embedding).run(progress=False)
    assert torch.isfinite(weights(trainer)).all()
