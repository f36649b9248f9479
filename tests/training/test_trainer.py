import json
import os
import signal

import pytest
import torch

from gflowexplainer import GFlowExplainer
from gflowexplainer.choices import Objective
from gflowexplainer.errors import CheckpointError, ConfigError, ModelError
from gflowexplainer.flow.exact import enumerate_subgraphs, terminal_distribution, total_variation
from gflowexplainer.flow.measure import log_growth
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import Stream
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.testing import GraphModel, NodeModel, random_graph
from gflowexplainer.training.checkpoint import CHECKPOINT, METRICS
from gflowexplainer.training.trainer import Trainer

CONTEXT = {"reward": "context", "beta": 4.0, "min_nodes": 1}
PREDICTION = {"reward": "prediction", "beta": 1.0}
REWARDS = [{}, PREDICTION]


def node_trainer(index=(0, 3, 5), model=None, state=None, fabric=None, **settings):
    graph = random_graph(12, 0.15, seed=1)
    model = NodeModel(seed=1) if model is None else model
    instances = Instances.around_nodes(graph.x, graph.edge_index, list(index), 2)
    embedding = Predictor(model).observe(graph.x, graph.edge_index, {}, graph.num_nodes)[1][instances.node_id]
    with torch.no_grad():
        evidence = model(graph.x, graph.edge_index).softmax(dim=1)[instances.node_id]
    small = {"max_nodes": 4, "epochs": 6, "rollouts": 4, "num_contexts": 6, "hidden": 16, **CONTEXT}
    chosen = Settings(**{**small, **settings})
    inputs = TaskInputs.of(Predictor(model), instances, embedding=embedding, node_prediction=evidence)
    return Trainer(FlowSampler(chosen, inputs, state), fabric=fabric)


def graph_trainer(state=None, fabric=None, **settings):
    graphs = [random_graph(8, 0.15, seed=seed) for seed in range(5)]
    model = GraphModel()
    instances = Instances.of_graphs(graphs)
    predictor = Predictor(model, level="graph")
    embedding = predictor.observe(instances.x, instances.edge_index, {"batch": instances.owner}, len(instances))[1]
    small = {"max_nodes": 3, "epochs": 4, "rollouts": 4, "num_contexts": 4, "hidden": 16, "batch_size": 2, **CONTEXT}
    inputs = TaskInputs.of(predictor, instances, embedding=embedding)
    return Trainer(FlowSampler(Settings(**{**small, **settings}), inputs, state), fabric=fabric)


def distance(trainer):
    instances = trainer.instances
    start = None if instances.level == "graph" else instances.center
    enumeration = enumerate_subgraphs(instances, torch.arange(len(instances)), start, trainer.settings.max_nodes)
    states = enumeration.states
    rewarded = torch.nonzero(states.size > 0).flatten()
    reward = torch.zeros(len(states), dtype=torch.double)
    reward[rewarded] = trainer.reward.log_reward(states.subgraphs[rewarded], states.can_grow[rewarded]).double()
    if trainer.settings.measure == "growth":
        reward += log_growth(states, enumeration.child, enumeration.level_ptr)
    target = enumeration.normalize(reward)
    policy = trainer.network.policy
    reached = terminal_distribution(enumeration, policy, trainer.sampler.encode())
    return float(total_variation(enumeration, reached, target).mean())


def learned(trainer):
    return torch.cat([value.flatten().double() for value in trainer.network.state_dict().values()])


@pytest.mark.parametrize("objective", Objective.names())
def test_every_objective_trains_on_nodes(objective):
    trainer = node_trainer(objective=objective, measure="uniform")
    before = learned(trainer)
    trainer.run(progress=False)
    assert trainer.iteration == trainer.num_iterations
    assert torch.isfinite(learned(trainer)).all()
    assert not torch.equal(before, learned(trainer))


@pytest.mark.parametrize("objective", ["flow_matching", "log_partition_variance", "trajectory_balance"])
def test_explanations_of_graphs_may_start_anywhere(objective):
    trainer = graph_trainer(objective=objective, measure="uniform")
    trainer.run(progress=False)
    assert trainer.iteration == 4 * 3
    every = torch.arange(5)
    first = trainer.sampler.sample(every.repeat_interleave(20), 0).subgraphs.members[:, 0]
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
    starts = trainer.sampler.starts(torch.arange(5))
    assert torch.equal(trainer.instances.owner[starts], torch.arange(5))


def test_the_papers_preset_trains():
    settings = Settings.preset("paper", epochs=2, max_nodes=5).to_dict()
    for trainer in (node_trainer(**settings), graph_trainer(**settings)):
        before = learned(trainer)
        trainer.run(progress=False)
        assert trainer.iteration == trainer.num_iterations > 0
        assert torch.isfinite(learned(trainer)).all()
        assert not torch.equal(before, learned(trainer))


ONE = {"index": [5], "node_identities": True, "hidden": 64, "epochs": 200, "rollouts": 32, "final_rate": 0.01}
SHARP = {"beta": 10.0}


@pytest.mark.parametrize(
    ("objective", "measure", "reward"),
    [
        ("flow_matching", "uniform", {**SHARP, "epochs": 120, "max_updates": 0}),
        ("detailed_balance", "growth", SHARP),
        ("log_partition_variance", "uniform", SHARP),
        ("log_partition_variance", "growth", PREDICTION),
    ],
)
def test_one_instance_is_learned_to_its_exact_distribution(objective, measure, reward):
    trainer = node_trainer(**{"objective": objective, "measure": measure, **ONE, **reward})
    untrained = distance(trainer)
    trainer.run(progress=False)
    assert distance(trainer) < 0.03
    assert untrained > 0.2


@pytest.mark.parametrize("parents", ["sequence", "graph"])
def test_other_parent_rules_learn_another_distribution(parents):
    trainer = node_trainer(parents=parents, objective="flow_matching", measure="uniform", **ONE, **SHARP)
    trainer.run(progress=False)
    assert distance(trainer) > 0.08


@pytest.mark.parametrize("reward", [{}, {"objective": "flow_matching", "measure": "uniform"}])
def test_where_graphs_may_start_anywhere_the_distribution_is_learned_too(reward):
    many = {"node_identities": True, "hidden": 64, "epochs": 150, "rollouts": 32, "batch_size": 8, "final_rate": 0.01}
    trainer = graph_trainer(**many, **reward)
    trainer.run(progress=False)
    assert distance(trainer) < 0.1  # it is 0.03 and 0.01; untrained 0.75 and 0.16


def test_several_descents_go_down_on_the_same_rollouts():
    twice, once = node_trainer(descents=2), node_trainer()
    record = twice.step()
    rollouts = once.sampler.sample(torch.arange(3).repeat_interleave(4), Stream.training, 0, explore=True)
    losses = []
    for _ in range(2):
        loss = once.sampler.objective(rollouts).mean
        losses.append(float(loss.detach()))
        once._find_gradients(loss)
        once._descend()
    assert record["loss"] == pytest.approx(losses[0], rel=1e-6)
    assert losses[1] < losses[0]
    for name, value in once.network.state_dict().items():
        torch.testing.assert_close(twice.network.state_dict()[name], value)


@pytest.mark.parametrize("reward", REWARDS)
def test_same_seed_same_weights_and_another_seed_others(reward):
    one, two, other = (node_trainer(seed=seed, **reward).run(progress=False) for seed in (3, 3, 4))
    assert torch.equal(learned(one), learned(two))
    assert not torch.equal(learned(one), learned(other))


def test_training_leaves_global_random_state_and_model_alone():
    model = NodeModel(seed=1)
    model.train()
    state, before = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    node_trainer(model=model).run(progress=False)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    "settings",
    [{}, {"objective": "trajectory_balance"}, PREDICTION],
)
def test_resuming_comes_to_the_same_weights(tmp_path, settings):
    whole = node_trainer(**settings).run(progress=False)
    node_trainer(**settings).run(tmp_path, progress=False, iterations=2)
    resumed = node_trainer(**settings).run(tmp_path, progress=False)
    assert resumed.iteration == whole.iteration
    assert torch.equal(learned(whole), learned(resumed))
    lines = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["iteration"] for line in lines] == list(range(whole.iteration))


def test_resuming_with_a_locator_comes_to_the_same_weights(tmp_path):
    settings = {"start": "locator", "objective": "detailed_balance"}
    whole = graph_trainer(**settings).run(progress=False)
    graph_trainer(**settings).run(tmp_path, progress=False, iterations=5)
    assert torch.equal(learned(whole), learned(graph_trainer(**settings).run(tmp_path, progress=False)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_training_loses_nothing(tmp_path, error):
    def interrupt(trainer, _record):
        if trainer.iteration == 3:
            raise error

    with pytest.raises(error):
        node_trainer().run(tmp_path, progress=False, callback=interrupt)
    resumed = node_trainer().run(tmp_path, progress=False)
    assert torch.equal(learned(resumed), learned(node_trainer().run(progress=False)))


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
    assert torch.equal(learned(resumed), learned(node_trainer(model=model).run(progress=False)))


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match="'model' differs"):
        node_trainer(model=NodeModel(seed=2)).run(tmp_path, progress=False)


def test_a_checkpoint_of_other_instances_is_refused(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match="'index' differs"):
        node_trainer(index=(1, 2)).run(tmp_path, progress=False)


def test_a_checkpoint_with_other_settings_says_which(tmp_path):
    node_trainer().run(tmp_path, progress=False, iterations=1)
    with pytest.raises(CheckpointError, match=r"setting beta: '4.0' there, '5.0' here"):
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


def interrupt_within(trainer, method, times=1):
    """Sends Ctrl-C from within a method of the trainer, the third time it is called."""
    inner, calls = getattr(trainer, method), []

    def wrapped(*arguments):
        calls.append(1)
        for _ in range(times if len(calls) == 3 else 0):
            os.kill(os.getpid(), signal.SIGINT)
        return inner(*arguments)

    setattr(trainer, method, wrapped)
    return trainer


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("method", ["_grow", "_descend", "_batch"])
def test_ctrl_c_in_the_middle_of_an_update_waits_for_its_end(tmp_path, method):
    handler, settings = signal.getsignal(signal.SIGINT), {}
    whole, seen = node_trainer(**settings).run(progress=False), []
    trainer = interrupt_within(node_trainer(**settings), method)
    with pytest.raises(KeyboardInterrupt):
        trainer.run(tmp_path, progress=False, callback=lambda _, record: seen.append(record["iteration"]))
    assert signal.getsignal(signal.SIGINT) is handler
    done = {"_grow": 3, "_descend": 1, "_batch": 3}[method]  # an update descends four times
    assert trainer.iteration == done
    assert seen == list(range(done))
    assert len((tmp_path / METRICS).read_text().splitlines()) == done
    resumed = node_trainer(**settings).run(tmp_path, progress=False)
    assert torch.equal(learned(resumed), learned(whole))
    lines = [json.loads(line)["iteration"] for line in (tmp_path / METRICS).read_text().splitlines()]
    assert lines == list(range(whole.iteration))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_second_ctrl_c_breaks_an_update_off_and_half_an_update_is_not_stored(tmp_path):
    whole = node_trainer().run(progress=False)
    node_trainer().run(tmp_path, progress=False, iterations=1)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        interrupt_within(node_trainer(), "_descend", times=2).run(tmp_path, progress=False)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert torch.equal(learned(node_trainer().run(tmp_path, progress=False)), learned(whole))


def test_a_locator_that_fails_leaves_no_half_trained_checkpoint(tmp_path):
    settings = {"start": "locator", "objective": "detailed_balance"}
    whole, broken = graph_trainer(**settings).run(progress=False), graph_trainer(**settings)

    def fail():
        raise RuntimeError("no locator")

    broken._train_locator = fail
    with pytest.raises(RuntimeError, match="no locator"):
        broken.run(tmp_path, progress=False)
    assert torch.equal(learned(whole), learned(graph_trainer(**settings).run(tmp_path, progress=False)))


def test_weights_carry_a_training_over_to_the_same_and_to_other_instances():
    for make in (node_trainer, graph_trainer):
        trained = make().run(progress=False)
        again = make(state=trained.sampler.state())
        assert torch.equal(learned(again), learned(trained))
        assert torch.equal(again.sampler.network_inputs.features, trained.sampler.network_inputs.features)
        every = torch.arange(len(trained.instances)).repeat_interleave(5)
        one, two = (t.sampler.sample(every, 9) for t in (trained, again))
        assert torch.equal(one.subgraphs.members, two.subgraphs.members)
        flows = [t.network.policy.log_flows(t.sampler.encode(), one.states) for t in (trained, again)]
        for mine, theirs in zip(*flows, strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize(("bound", "updates"), [(0, 12), (5, 5), (12, 12), (40, 12)])
def test_updates_end_with_the_epochs_or_at_their_bound(bound, updates):
    trainer = graph_trainer(max_updates=bound)
    assert trainer.num_iterations == updates
    assert trainer.run(progress=False).iteration == updates


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
    bare, settings = TaskInputs.of(Predictor(model), instances), Settings(epochs=1, reward="context")
    with pytest.raises(ConfigError, match="model_embeddings=False"):
        Trainer(FlowSampler(settings, bare)).run(progress=False)
    blind = settings.change(model_embeddings=False)
    assert Trainer(FlowSampler(blind, bare)).run(progress=False).iteration == 1
    with pytest.raises(ConfigError, match="embeddings are needed"):
        FlowSampler(Settings(reward="regularized", model_embeddings=False), bare)


def test_an_instance_of_one_node_is_explained_by_itself():
    graph = random_graph(4)
    graph.x = torch.cat([graph.x, torch.ones(1, 3)])
    instances = Instances.around_nodes(graph.x, graph.edge_index, [4, 0], 2)
    model = NodeModel()
    embedding = Predictor(model).observe(graph.x, graph.edge_index, {}, graph.num_nodes)[1][instances.node_id]
    settings = Settings(epochs=3, max_nodes=3, reward="context")
    inputs = TaskInputs.of(Predictor(model), instances, embedding=embedding, node_prediction=embedding)
    trainer = Trainer(FlowSampler(settings, inputs)).run(progress=False)
    alone = trainer.sampler.sample(torch.zeros(3, dtype=torch.long), 0).subgraphs
    assert alone.size.tolist() == [1, 1, 1]


@pytest.mark.parametrize("start", ["anywhere", "locator"])
def test_a_model_of_double_precision_is_trained_on(start):
    graphs = [random_graph(8, 0.15, seed=seed) for seed in range(3)]
    for graph in graphs:
        graph.x = graph.x.double()
    model, instances = GraphModel().double(), Instances.of_graphs(graphs)
    predictor = Predictor(model, level="graph")
    embedding = predictor.observe(instances.x, instances.edge_index, {"batch": instances.owner}, len(instances))[1]
    settings = Settings(epochs=2, max_nodes=3, rollouts=2, num_contexts=2, hidden=8, start=start, reward="context")
    inputs = TaskInputs.of(predictor, instances, embedding=embedding)
    trainer = Trainer(FlowSampler(settings, inputs)).run(progress=False)
    assert torch.isfinite(learned(trainer)).all()


def test_the_same_seed_gives_the_same_weights_on_several_threads():
    data, model = random_graph(200, 0.03, seed=1), NodeModel(seed=1)
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        settings = {"reward": "context", "num_contexts": 1, "max_updates": 1, "rollouts": 16, "max_nodes": 10}
        fits = [GFlowExplainer(**settings).fit(model, data, range(32), progress=False) for _ in range(2)]
    finally:
        torch.set_num_threads(threads)
    first, *others = (fit._fitted.sampler.network for fit in fits)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
