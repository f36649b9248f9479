import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from gflowbench.datasets import reference_folder
from gflowbench.datasets.benchmark import Benchmark
from gflowbench.explainers.interface import Subject
from gflowbench.explainers.registry import create
from gflowbench.explainers.rg_explainer import RGExplainer, _Training, places_in
from gflowbench.explainers.rg_policy import RGPolicy, advantages, log_likelihood, policy_gradient_loss
from gflowbench.explainers.rg_pretraining import in_likeliest_order, in_order, sample_goals
from gflowbench.explainers.rg_reward import RGReward, WithRepresentation
from gflowbench.metrics.ground_truth import GroundTruth
from gflowbench.metrics.measurement import MetricSettings, measure
from gflowbench.protocol import problem
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.policy import log_outflow
from gflowexplainer.flow.sampling import follow_policy, roll_out, rollout_keys
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.ops.segments import segment_sum
from gflowexplainer.testing import GraphModel, NodeModel, house, random_graph

REFERENCE = reference_folder()
SMALL = {
    "max_nodes": 6,
    "epochs": 2,
    "list_epochs": 1,
    "set_epochs": 1,
    "candidates": 4,
    "locator_updates": 10,
    "hidden": 16,
}
WEIGHTS = {"edge_weight": 0.01, "distance_weight": 1.0, "radius_weight": 0.1}


def subject(task="node"):
    if task == "node":
        graph = random_graph(14, 0.15, seed=2)
        graph.y = torch.zeros(14, dtype=torch.long)
        return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[0, 4, 9], num_classes=3))
    graphs = [random_graph(8, 0.2, seed=seed) for seed in range(4)]
    for graph in graphs:
        graph.y = torch.zeros(1, dtype=torch.long)
    return Subject.of(GraphModel(), Benchmark.from_graphs(graphs, task="graph", num_classes=2))


def little_house():
    """The house with node 2 explained, small enough to list every walk."""
    graph = house()
    graph.y = torch.zeros(5, dtype=torch.long)
    return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[2], num_classes=3))


def random_policy(about, **settings):
    torch.manual_seed(0)
    policy = RGPolicy(about.instances.x.size(1), hidden=8, **settings)
    torch.nn.init.normal_(policy.head.weight)
    torch.nn.init.normal_(policy.gate.weight)
    return policy.double()


def every_walk(policy, encoding, states, log_p):
    """Follows every sequence of actions to its end: members in order and log-probability."""
    action, stop = policy.log_flows(encoding, states)
    yield states.members[0], log_p + stop[0]
    for position in range(states.frontier.numel()):
        yield from every_walk(policy, encoding, states.step(torch.tensor([position])), log_p + action[position])


@pytest.fixture(scope="module")
def walks():
    """All walks of at most three nodes, their rewards, and the gradient of the expected reward."""
    about = little_house()
    policy = random_policy(about)
    encoding = policy.encode(about.instances, about.instances.x.double())
    first = States.initial(about.instances, torch.tensor([0]), about.instances.center, 3)
    found = list(every_walk(policy, encoding, first, torch.zeros((), dtype=torch.double)))
    members = torch.stack([walk for walk, _ in found])
    probability = torch.stack([log_p for _, log_p in found]).exp()
    instance = torch.zeros(len(found), dtype=torch.long)
    reward = RGReward(about.predictor, about.instances, target=about.target, **WEIGHTS)
    score = reward.log_score(Subgraphs(instance, members)).double()
    truth = torch.autograd.grad((probability * score).sum(), list(policy.parameters()), allow_unused=True)
    return about, policy, members, probability.detach(), score, truth


def gradient_of(loss, policy):
    return torch.autograd.grad(loss, list(policy.parameters()), allow_unused=True)


def assert_opposite(gradient, truth):
    assert any(part is not None and part.abs().max() > 1e-4 for part in truth)
    for mine, wanted in zip(gradient, truth, strict=True):
        assert (mine is None) == (wanted is None)
        if mine is not None:
            assert torch.allclose(-mine, wanted, atol=1e-10)


def test_probabilities_of_all_walks_sum_to_one(walks):
    _, _, members, probability, _, _ = walks
    assert len({tuple(row) for row in members.tolist()}) == len(members) > 6
    assert float(probability.sum()) == pytest.approx(1, abs=1e-12)


def test_expected_policy_gradient_is_the_gradient_of_the_expected_reward(walks):
    about, policy, members, probability, score, truth = walks
    encoding = policy.encode(about.instances, about.instances.x.double())
    count = len(members)
    zeros = torch.zeros(count, dtype=torch.long)
    again = roll_out(about.instances, zeros, members[:, 0], members.size(1), in_order(members), ordered=True)
    assert torch.equal(again.subgraphs.members, members)
    likelihood = log_likelihood(policy, encoding, again)
    assert torch.allclose(segment_sum(likelihood, again.rollout, count).exp(), probability)
    loss = policy_gradient_loss(likelihood, again.rollout, count * probability * advantages(score, 1, baseline=True))
    assert_opposite(gradient_of(loss, policy), truth)


def test_the_baseline_does_not_change_the_expected_gradient(walks):
    about, policy, members, probability, score, truth = walks
    encoding = policy.encode(about.instances, about.instances.x.double())
    count = len(members)
    pair = torch.cartesian_prod(torch.arange(count), torch.arange(count))
    both = pair.flatten()
    again = roll_out(
        about.instances, torch.zeros_like(both), members[both, 0], members.size(1), in_order(members[both])
    )
    likelihood = log_likelihood(policy, encoding, again)
    less = advantages(score[both], 2, baseline=True)
    assert torch.allclose(less.view(-1, 2).sum(dim=1), torch.zeros(len(pair), dtype=torch.double))
    chance = probability[pair].prod(dim=1).repeat_interleave(2)
    loss = policy_gradient_loss(likelihood, again.rollout, len(pair) * chance * less)
    assert_opposite(gradient_of(loss, policy), truth)


def test_likelihood_of_some_states_is_that_part_of_all(walks):
    about, policy, members, _, _, _ = walks
    encoding = policy.encode(about.instances, about.instances.x.double())
    zeros = torch.zeros(len(members), dtype=torch.long)
    again = roll_out(about.instances, zeros, members[:, 0], members.size(1), in_order(members))
    some = torch.tensor([7, 0, 3, 3, len(again.rollout) - 1])
    whole = log_likelihood(policy, encoding, again)
    assert torch.allclose(log_likelihood(policy, encoding, again, some), whole[some])


@pytest.mark.parametrize("propagation", ["graph", "frontier"])
def test_actions_and_stop_are_a_distribution_and_an_untrained_gate_stops_half_the_time(propagation):
    about = subject()
    every = torch.arange(3)
    for policy in (random_policy(about, propagation=propagation), RGPolicy(3, propagation=propagation).double()):
        encoding = policy.encode(about.instances, about.instances.x.double())
        states = roll_out(about.instances, every, about.instances.center, 5, follow_policy(policy, encoding)).states
        action, stop = policy.log_flows(encoding, states)
        assert torch.allclose(log_outflow(states, action, stop), torch.zeros(len(states), dtype=torch.double))
    assert torch.allclose(stop.exp(), torch.where(states.can_grow, 0.5, 1.0).double())


def test_rewards_by_hand(triangle_subject):
    about = triangle_subject  # whole: node 0 has 2 neighbours, so class 1
    reward = RGReward(about.predictor, about.instances, target=about.target, **WEIGHTS)
    sets = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 1, -1], [0, 2, 3], [0, 1, 2]]))
    half, seven_tenths = torch.tensor(0.5).log(), torch.tensor(1.0).sigmoid().log()
    wanted = [half - 0.02 - 1 - 0.1, half - 0.04 - 1 - 0.2, seven_tenths - 0.06 - 0 - 0.1]
    assert reward.log_score(sets).tolist() == pytest.approx([float(value) for value in wanted])


def test_graph_rewards_by_hand_keep_the_nodes_and_count_the_radius_from_the_start(molecules, mean_degree):
    about = Subject.of(mean_degree, molecules)  # graph 0: five nodes, mean degree 2
    reward = RGReward(about.predictor, about.instances, target=about.target, removal="isolate", **WEIGHTS)
    sets = Subgraphs(torch.zeros(2, dtype=torch.long), torch.tensor([[0, 2, 3], [2, 3, 0]]))
    base = float(torch.tensor(0.8).sigmoid().log()) - 0.04 - 1.2
    assert reward.log_score(sets).tolist() == pytest.approx([base - 0.2, base - 0.1])


@pytest.mark.parametrize("task", ["node", "graph"])
def test_representation_is_what_the_last_layer_reads(task):
    about = subject(task)
    model, instances = about.predictor.model, about.instances
    arguments = {} if task == "node" else {"batch": instances.owner}
    answer = WithRepresentation(model)(instances.x, instances.edge_index, **arguments)
    scores = model(instances.x, instances.edge_index, **arguments)
    representation = answer[:, scores.size(1) :]
    assert torch.allclose(answer[:, : scores.size(1)], scores)
    if task == "graph":
        assert torch.allclose(3 * model.readout(representation), scores)
    else:  # no dense layer: the last convolution
        assert torch.allclose(3 * representation, scores)


@pytest.mark.parametrize("task", ["node", "graph"])
def test_goals_are_breadth_first_connected_and_the_best_of_those_drawn(task):
    about = subject(task)
    instances = about.instances
    start = instances.center if task == "node" else instances.ptr[:-1] + 2
    reward = RGReward(about.predictor, instances, target=about.target, **WEIGHTS)
    graph = nx.Graph(instances.edge_index.t().tolist())
    every = torch.arange(len(instances))
    for draw in range(3):
        goals = sample_goals(reward, start, draw, max_nodes=6, candidates=8)
        for row, root in zip(goals.tolist(), start.tolist(), strict=True):
            members = [node for node in row if node >= 0]
            assert members[0] == root
            assert 4 <= len(members) <= 6
            assert all(nx.is_connected(graph.subgraph(members[: k + 1])) for k in range(len(members)))
            steps = nx.single_source_shortest_path_length(graph, root)
            assert [steps[node] for node in members] == sorted(steps[node] for node in members)
        best = reward.log_score(Subgraphs(every, goals))
        # Keys number the candidates, so that a single one is the first of eight.
        single = reward.log_score(Subgraphs(every, sample_goals(reward, start, draw, max_nodes=6, candidates=1)))
        assert (best >= single - 1e-6).all()


def test_goals_keep_within_reach_and_never_take_all_of_it():
    about = subject("graph")
    instances = about.instances
    start = instances.ptr[:-1] + 2
    reward = RGReward(about.predictor, instances, target=about.target, **WEIGHTS)
    graph = nx.Graph(instances.edge_index.t().tolist())
    sizes = set()
    for draw in range(8):
        for row, root in zip(
            sample_goals(reward, start, draw, max_nodes=8, candidates=1, reach=2).tolist(), start.tolist(), strict=True
        ):
            members = {node for node in row if node >= 0}
            near = set(nx.single_source_shortest_path_length(graph, root, cutoff=2))
            assert members < near
            sizes.add(len(members))
    assert len(sizes) > 1


def test_both_orders_rebuild_the_goal_and_the_policys_own_is_likelier():
    about = subject()
    instances, every = about.instances, torch.arange(3)
    policy = random_policy(about)
    encoding = policy.encode(instances, instances.x.double())
    reward = RGReward(about.predictor, instances, target=about.target, **WEIGHTS)
    goals = sample_goals(reward, instances.center, 0, max_nodes=6, candidates=1)
    sums = []
    for choose in (in_order(goals), in_likeliest_order(goals, policy, encoding)):
        again = roll_out(instances, every, instances.center, 6, choose)
        assert torch.equal(again.subgraphs.members.sort().values, goals.sort().values)
        first = again.rollout == again.states.instance[again.state]
        assert first.all()
        sums.append(log_likelihood(policy, encoding, again)[: len(every)])
    assert (sums[1] >= sums[0]).all()


@pytest.mark.parametrize("task", ["node", "graph"])
def test_pretraining_raises_the_likelihood_of_fresh_goals(task):
    about = subject(task)
    training = _Training(RGExplainer(**SMALL | {"list_epochs": 8, "set_epochs": 4}), about, 0)
    start = about.instances.center if task == "node" else about.instances.ptr[:-1]
    fresh = sample_goals(training.reward, start, 99, max_nodes=6, candidates=4)

    def likelihood():
        again = roll_out(about.instances, torch.arange(len(about)), start, 6, in_order(fresh))
        with torch.no_grad():
            encoding = training.policy.encode(about.instances, training.features)
            return float(log_likelihood(training.policy, encoding, again).sum())

    before = likelihood()
    training.imitate()
    assert likelihood() > before + 1


def test_policy_gradient_raises_the_mean_reward():
    about = subject()
    training = _Training(RGExplainer(**SMALL), about, 0)

    @torch.no_grad()
    def mean_reward():
        encoding = training.policy.encode(about.instances, training.features)
        many = torch.arange(3).repeat_interleave(200)
        key = rollout_keys(about.instances, many, 5)
        start = about.instances.center[many]
        grown = roll_out(about.instances, many, start, 6, follow_policy(training.policy, encoding), key)
        return float(training.reward.log_score(grown.subgraphs).mean())

    before = mean_reward()
    training.reinforce(range(25))
    assert mean_reward() > before + 0.05


@pytest.mark.parametrize("name", ["rg-explainer", "rg-explainer-no-pretraining"])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_explanations_are_connected_scored_by_order_and_the_same_again(task, name):
    about = subject(task)
    model = about.predictor.model.train()
    results = []
    for _ in range(2):
        explainer = create(name, **SMALL)
        assert explainer.name == name
        explainer.fit(about, seed=3)
        results.append(explainer.explain(about, seed=3))
        torch.rand(1)
    scores = results[0]
    scores.check(about.instances, name)
    assert torch.equal(scores.edge, results[1].edge)
    assert torch.equal(scores.order, results[1].order)
    graph = nx.Graph(about.instances.edge_index.t().tolist())
    for number, row in enumerate(scores.order.tolist()):
        members = [node for node in row if node >= 0]
        assert 1 <= len(members) <= 6
        assert task == "graph" or members[0] == about.instances.center[number]
        assert all(nx.is_connected(graph.subgraph(members[: k + 1])) for k in range(len(members)))
    assert model.training
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_an_epoch_is_one_update_on_instances_drawn_anew_and_stages_are_shorter_fits():
    about = subject()
    training = _Training(RGExplainer(**SMALL | {"batch_size": 2}), about, 0)
    steps, seen = [], []
    step, log_score = training.optimizer.step, training.reward.log_score
    training.optimizer.step = lambda: (steps.append(1), step())
    training.reward.log_score = lambda sets: (seen.append(set(sets.instance.tolist())), log_score(sets))[1]
    training.reinforce(range(6))
    assert len(steps) == len(seen) == 6
    assert all(len(some) == 2 for some in seen)
    assert set().union(*seen) == {0, 1, 2}
    staged = RGExplainer(**SMALL)
    for stage in staged.fit_in_stages(about, 3, [0, 1, 2]):
        whole = RGExplainer(**SMALL | {"epochs": stage})
        whole.fit(about, seed=3)
        assert torch.equal(staged.explain(about, seed=3).edge, whole.explain(about, seed=3).edge)
    assert stage == 2


def path_subject():
    """Node 3 of a path of nine, looked at by two layers: nodes 1 to 5."""
    ends = torch.arange(8)
    edge_index = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    graph = Data(x=torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), edge_index=edge_index)
    graph.y = torch.zeros(9, dtype=torch.long)
    return Subject.of(NodeModel(), Benchmark.from_graphs([graph], task="node", index=[3], num_classes=3))


def test_wider_instances_hold_more_nodes_of_the_same_predictions():
    about = path_subject()
    reached = about.predictor.num_hops
    wide = about.wider(2)
    assert about.wider(0) is about
    assert subject("graph").wider(2).instances.num_nodes == subject("graph").instances.num_nodes
    for inputs, hops in ((about, reached), (wide, reached + 2)):
        wanted = [node for node in range(9) if abs(node - 3) <= hops]
        assert sorted(inputs.instances.node_id.tolist()) == wanted
    assert torch.equal(wide.target.prediction, about.target.prediction)
    assert (wide.name, wide.max_nodes) == (about.name, about.max_nodes)


def test_subgraphs_grow_beyond_what_the_model_looks_at_and_nodes_there_only_take_places():
    about = path_subject()
    explainer = RGExplainer(**SMALL | {"max_nodes": 8, "beyond": 9, "epochs": 0})
    explainer.fit(about, seed=0)
    wide, order = explainer.grow(about, seed=0)
    assert wide.instances.num_nodes == 9
    # A path that is grown to one side first, and beyond what the model looks at.
    nodes = [3, 4, 5, 6, 7, 8, 2, 1]
    position = {node: place for place, node in enumerate(wide.instances.node_id.tolist())}
    found = places_in(about.instances, wide.instances, torch.tensor([[position[node] for node in nodes]]))
    inside = set(about.instances.node_id.tolist())
    assert [about.instances.node_id[place].item() if place >= 0 else -1 for place in found[0]] == [
        node if node in inside else -1 for node in nodes
    ]
    scores = explainer.explain(about, seed=0)
    scores.check(about.instances, explainer.name)
    filled = scores.order[0] >= 0
    assert filled.tolist() == sorted(filled.tolist(), reverse=True)
    kept = [node for node in wide.instances.node_id[order[0][order[0] >= 0]].tolist() if node in inside]
    assert about.instances.node_id[scores.order[0][filled]].tolist() == kept


@pytest.mark.parametrize("task", ["node", "graph"])
def test_unseen_instances_are_explained_without_training(task):
    about = subject(task)
    explainer = RGExplainer(**SMALL)
    explainer.fit(about.select(torch.tensor([0, 1])), seed=0)
    together = explainer.explain(about, seed=0)
    alone = about.select(torch.tensor([2]))
    order = explainer.explain(alone, seed=0).order
    shift = int(about.instances.ptr[2])
    assert torch.equal(torch.where(order < 0, -1, order + shift)[0], together.order[2])


def test_coefficients_are_the_published_ones_unless_asked_for():
    about = subject()
    usual = {"edge_weight": 0.01, "distance_weight": 1.0, "radius_weight": 0.1}
    assert RGExplainer().coefficients(about) == usual
    assert RGExplainer(radius_weight=0.5).coefficients(about) == usual | {"radius_weight": 0.5}
    assert set(RGExplainer().coefficients(subject("graph")).values()) == {0.01}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_nodes": 0}, "'max_nodes' must be at least 1"),
        ({"rollouts": 0}, "'rollouts' must be at least 1"),
        ({"epochs": -1}, "'epochs' must not be negative"),
        ({"learning_rate": 0.0}, "'learning_rate' must be a positive number"),
        ({"propagation": "grph"}, "Did you mean 'graph'"),
        ({"removal": "isolated"}, "Did you mean 'isolate'"),
        ({"reach": 0}, "'reach' must be at least 1"),
        ({"locator_goals": "growht"}, "Did you mean 'growth'"),
        ({"locator_loss": "expect"}, "Did you mean 'expected'"),
        ({"alpha": 2.0}, "must lie in"),
        ({"colour": "red"}, "does not take these settings"),
    ],
)
def test_wrong_settings_are_refused_when_made(wrong, message):
    with pytest.raises(ConfigError, match=message):
        create("rg-explainer", **wrong)


def test_explaining_before_fitting_is_refused():
    with pytest.raises(ConfigError, match="not been fitted"):
        RGExplainer(**SMALL).explain(subject(), seed=0)


@pytest.mark.skipif(
    REFERENCE is None or not (REFERENCE / "tree_cycles.npz").is_file(), reason="needs the reference folder"
)
@pytest.mark.parametrize(("dataset", "every"), [("tree-cycles", 4), ("tree-grid", 15)])
def test_the_papers_number_on_the_trees_without_pretraining(dataset, every):
    """Printed: exactly 0.500 on both, so nothing is explained: the policy stops before it has added a node."""
    loaded = problem(dataset, every=every).load()
    about = Subject.of(loaded.model, loaded.benchmark, loaded.index)
    explainer = create("rg-explainer-no-pretraining")
    explainer.fit(about, seed=0)
    scores = explainer.explain(about, seed=0)
    assert ((scores.order >= 0).sum(dim=1) == 1).double().mean() > 0.9
    metrics, _ = measure(
        about,
        scores,
        GroundTruth.of(loaded.benchmark, about),
        top_k=6,
        settings=MetricSettings(num_contexts=0),
    )
    assert metrics["auc_own"] == pytest.approx(0.5, abs=0.02)
