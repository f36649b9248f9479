from functools import partial

import networkx
import torch

from gflowbench.explainers.registry import create
from gflowbench.typed.link_explainers import gnn_explainer, model_paths
from gflowbench.typed.link_floors import shortest_ways
from gflowbench.typed.link_scores import edge_auc
from gflowbench.typed.motif_links import load_motif_links, make_motif_links


def test_ends_of_a_motif_share_two_neighbours_and_others_none():
    graph, motifs, absent = make_motif_links(0)
    whole = networkx.Graph(graph.edge_index.t().tolist())
    for one, other, left, right in motifs.tolist():
        assert {left, right} <= set(networkx.common_neighbors(whole, one, other))
        assert not whole.has_edge(one, other)
    for one, other in absent.t().tolist():
        assert networkx.shortest_path_length(whole, one, other) in (3, 4)


def test_the_truth_is_found_by_who_knows_it_and_peers_run():
    task = load_motif_links(0)
    assert task.test.size(1) >= 30
    truth = [{edge for path in paths for edge in path} for paths in task.paths]
    for (one, other), edges in zip(task.test.t().tolist(), truth, strict=True):
        ends = [task.ends_of(edge) for edge in edges]
        assert {("node", one), ("node", other)} <= {end for pair in ends for end in pair}
        assert len(edges) == 4
    few = type(task)(task.graph, task.model, None, task.train, task.test[:, :2], task.paths[:2], task.around[:2])
    for explainer in (shortest_ways, model_paths, partial(gnn_explainer, epochs=5)):
        scores = explainer(few, 0)
        assert len(scores) == 2
        scored = [{e: v for e, v in s.items() if e in set(few.around[i])} for i, s in enumerate(scores)]
        aucs = [edge_auc(s, truth[i], few.around[i]) for i, s in enumerate(scored)]
        if explainer is model_paths:
            assert min(aucs) > 0.9


def test_our_paths_are_named_as_the_truth_is():
    task = load_motif_links(0)
    few = type(task)(task.graph, task.model, None, task.train[:, :4], task.test[:, :2], task.paths[:2], task.around[:2])
    explainer = create("gflow", links=True, max_nodes=4)
    explainer.fit(few, 0)
    assert all(set(score) & set(around) for score, around in zip(explainer.explain(few, 0), few.around, strict=True))
    assert torch.is_tensor(few.edge_index["node", "edge", "node"])
