import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.sampling import grow_uniformly, roll_out, rollout_keys
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import subgraph_keys
from gflowexplainer.testing import house, path, random_graph, star


def grown(seeds, max_nodes=6, rooted=True, num_nodes=12, density=0.2):
    """All states of one random growth for each seed, with the networkx graphs they grew in."""
    graphs = [random_graph(num_nodes, density, seed) for seed in seeds]
    instances = Instances.of_graphs(graphs)
    every = torch.arange(len(graphs))
    start = instances.ptr[:-1] + 1 if rooted else None
    keys = rollout_keys(instances, every, *seeds)
    states = roll_out(instances, every, start, max_nodes, grow_uniformly, keys).states
    return states, [nx.Graph(g.edge_index.t().tolist()) for g in graphs]


def local_members(states, row):
    first = states.instances.ptr[states.instance[row]]
    return (states.members[row][: states.size[row]] - first).tolist()


def local_frontier(states, row):
    first = states.instances.ptr[states.instance[row]]
    return (states.frontier[states.frontier_ptr[row] : states.frontier_ptr[row + 1]] - first).tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.05, 0.2, 0.6]))
def test_a_growing_state_agrees_with_networkx(seed, rooted, density):
    states, graphs = grown([seed], rooted=rooted, density=density)
    for row in range(len(states)):
        graph, members = graphs[0], local_members(states, row)
        if not members:
            assert local_frontier(states, row) == sorted(graph.nodes)
            continue
        inside = graph.subgraph(members)
        assert nx.is_connected(inside)
        boundary = nx.node_boundary(graph, members) if len(members) < states.max_nodes else set()
        assert local_frontier(states, row) == sorted(boundary)
        begin = int(states.frontier_ptr[row])
        for offset, node in enumerate(local_frontier(states, row)):
            assert int(states.links[begin + offset]) == len(set(graph[node]) & set(members))
        assert states.inner_degree[row][: len(members)].tolist() == [inside.degree(node) for node in members]
        cut = set(nx.articulation_points(inside))
        assert {members[i] for i in torch.nonzero(states.is_cut[row]).flatten().tolist()} == cut


@pytest.mark.parametrize("rooted", [True, False])
def test_every_dag_parent_is_connected_and_leads_back(rooted):
    states, graphs = grown(range(8), rooted=rooted)
    row, slot = torch.nonzero(states.parents("dag"), as_tuple=True)
    parents = states.without(row, slot)
    for number, (state, position) in enumerate(zip(row.tolist(), slot.tolist(), strict=True)):
        members = local_members(parents, number)
        graph = graphs[int(states.instance[state])]
        assert not members or nx.is_connected(graph.subgraph(members))
        assert local_members(states, state)[position] in local_frontier(parents, number)


@pytest.mark.parametrize("rooted", [True, False])
def test_the_dag_rule_misses_no_parent(rooted):
    states, graphs = grown(range(8), rooted=rooted)
    for row in range(len(states)):
        members, graph = local_members(states, row), graphs[int(states.instance[row])]
        found = {members[i] for i in torch.nonzero(states.parents("dag")[row]).flatten().tolist()}
        removable = {
            node
            for node in members[1 if rooted else 0 :]
            if len(members) == 1 or nx.is_connected(graph.subgraph(set(members) - {node}))
        }
        assert found == removable


def test_parent_rules_of_a_path_by_hand():
    # 0 - 1 - 2 - 3, grown from node 1 as 1, 2, 0: node 1 is root and cut vertex, both others are parents.
    instances = Instances.of_graphs([path(4)])
    states = States.initial(instances, torch.tensor([0]), torch.tensor([1]), max_nodes=3)
    states = states.step(torch.tensor([1]))
    assert states.members.tolist() == [[1, 2, -1]]
    states = states.step(torch.tensor([0]))
    assert states.members.tolist() == [[1, 2, 0]]
    assert states.parents("dag").tolist() == [[False, True, True]]
    assert states.parents("sequence").tolist() == [[False, False, True]]
    assert states.parents("graph").tolist() == [[False, True, True]]
    assert states.is_cut.tolist() == [[True, False, False]]
    # At the size bound nothing can be added, although node 3 is next to node 2.
    assert states.frontier.numel() == 0


def test_the_graph_rule_lists_disconnecting_parents_and_dag_does_not():
    instances = Instances.of_graphs([path(3)])
    states = States.initial(instances, torch.tensor([0]), torch.tensor([0]), max_nodes=3)
    states = states.step(torch.tensor([0])).step(torch.tensor([0]))
    assert states.members.tolist() == [[0, 1, 2]]
    assert states.parents("graph").tolist() == [[False, True, True]]
    assert states.parents("dag").tolist() == [[False, False, True]]


def test_an_isolated_node_is_a_state_of_its_own():
    graph = path(3)
    graph.x = torch.cat([graph.x, torch.ones(1, 3)])
    instances = Instances.of_graphs([graph])
    states = States.initial(instances, torch.tensor([0]), torch.tensor([3]), max_nodes=4)
    assert not states.can_grow.any()
    assert not states.parents("dag").any()


def test_growth_stays_in_its_component_and_ignores_self_loops_and_repeats():
    graph = path(3)
    loops = torch.tensor([[1, 0, 0], [1, 1, 1]])
    graph.edge_index = torch.cat([graph.edge_index, loops], dim=1)
    graph.x = torch.ones(5, 3)
    graph.edge_index = torch.cat([graph.edge_index, torch.tensor([[3, 4], [4, 3]])], dim=1)
    instances = Instances.of_graphs([graph])
    every = torch.zeros(1, dtype=torch.long)
    states = roll_out(instances, every, torch.tensor([0]), 5, grow_uniformly).states
    assert sorted(states.members[-1][: states.size[-1]].tolist()) == [0, 1, 2]
    assert states.links.max() == 1


def test_a_batch_gives_what_its_members_give_alone():
    together, _ = grown([3, 4, 5])
    for number, seed in enumerate([3, 4, 5]):
        graph = Instances.of_graphs([random_graph(12, 0.2, seed)], first=number)
        start = graph.ptr[:-1] + 1
        keys = rollout_keys(graph, torch.tensor([0]), 3, 4, 5)
        alone = roll_out(graph, torch.tensor([0]), start, 6, grow_uniformly, keys).states
        mine = torch.nonzero(together.instance == number).flatten()
        shift = together.instances.ptr[number]
        expected = torch.where(together.members[mine] < 0, -1, together.members[mine] - shift)
        assert torch.equal(expected, alone.members)
        assert torch.equal(together.select(mine).links, alone.links)


def test_select_and_cat_keep_states_whole():
    states, _ = grown(range(4))
    order = torch.randperm(len(states), generator=torch.Generator().manual_seed(0))
    shuffled = states.select(order)
    back = shuffled.select(torch.argsort(order))
    for name in ("members", "size", "frontier", "frontier_ptr", "links", "cut", "is_cut", "inner_degree"):
        assert torch.equal(getattr(back, name), getattr(states, name)), name
    half = len(states) // 2
    joined = States.cat([states.select(torch.arange(half)), states.select(torch.arange(half, len(states)))])
    assert torch.equal(joined.frontier, states.frontier)
    assert torch.equal(joined.frontier_ptr, states.frontier_ptr)


def test_of_sets_finds_the_same_frontier_as_growing():
    for rooted in (True, False):
        states, _ = grown(range(6), rooted=rooted)
        rebuilt = States.of_sets(states.instances, states.subgraphs, rooted)
        for name in ("frontier", "frontier_ptr", "links", "inner_degree", "size"):
            assert torch.equal(getattr(rebuilt, name), getattr(states, name)), name


def test_the_hash_forgets_the_order_of_insertion():
    instances = Instances.of_graphs([house()])
    one = States.initial(instances, torch.tensor([0]), torch.tensor([0]), 3)
    first = one.step(torch.tensor([0])).step(torch.tensor([0]))  # 0, 1, then 2
    other = one.step(torch.tensor([1])).step(torch.tensor([1]))  # 0, 3, then 2
    third = one.step(torch.tensor([0])).step(torch.tensor([1]))  # 0, 1, then 3
    fourth = one.step(torch.tensor([1])).step(torch.tensor([0]))  # 0, 3, then 1
    keys = [int(subgraph_keys(instances, s.subgraphs)) for s in (first, other, third, fourth)]
    assert set(third.members[0].tolist()) == set(fourth.members[0].tolist()) == {0, 1, 3}
    assert keys[2] == keys[3]
    assert len({keys[0], keys[1], keys[2]}) == 3


def test_a_hub_costs_what_its_edges_cost():
    instances = Instances.of_graphs([star(20_000, width=1)])
    states = States.initial(instances, torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long), 5)
    states = states.step(states.frontier_ptr[:-1] + 7)
    assert states.frontier_counts.tolist() == [19_999] * 4
    assert states.is_cut.sum() == 0


@pytest.mark.parametrize("bound", [0, -3])
def test_a_size_bound_below_one_is_refused(bound):
    instances = Instances.of_graphs([path(3)])
    with pytest.raises(ConfigError, match=f"max_nodes.*{bound}"):
        States.initial(instances, torch.tensor([0]), torch.tensor([0]), bound)


def test_an_unknown_parent_rule_is_answered_with_the_nearest():
    states, _ = grown([0])
    with pytest.raises(ConfigError, match="Did you mean 'dag'"):
        states.parents("dags")
