"""PGExplainer of links: what the network sees, its coin flips, and that it learns which edges count."""

import pytest
import torch

from gflowbench.typed.link_peers import create_link_peer
from gflowbench.typed.link_pg_explainer import coin_flips, embeddings
from gflowbench.typed.link_scores import score_links
from gflowbench.typed.toy_links import shared_attributes, shared_neighbours


def test_embeddings_are_what_arrives_in_the_last_layer():
    plain = shared_neighbours()
    adjacency = torch.zeros(8, 8).index_put(tuple(plain.graph.edge_index), torch.tensor(1.0))
    assert torch.equal(embeddings(plain)["node"], adjacency)  # features are one-hot
    typed = embeddings(shared_attributes())
    assert typed["user"].tolist() == [[1, 1, 0], [0, 0, 1]]
    assert typed["item"].tolist() == [[0, 1, 1]]
    assert typed["attr"].tolist() == [[0, 0, 0]] * 3  # nothing arrives at attributes


def test_coins_fall_by_their_logits():
    torch.manual_seed(0)
    logits = torch.full((20_000,), 1.0)
    # Where the flip stays away from certainty, heads come up as often as sigmoid(1), but for a percent.
    assert float((coin_flips(logits, 0.5) > 0.5).float().mean()) == pytest.approx(0.731, abs=0.02)


def test_the_network_learns_which_edges_count():
    task = shared_neighbours()
    answers = create_link_peer("pgexplainer", epochs=150, size=0.1).explain(task, 0)
    again = create_link_peer("pgexplainer", epochs=150, size=0.1).explain(task, 0)
    assert answers.scores == again.scores
    ends = {(1, 0), (2, 0), (1, 3), (2, 3)}
    for score in answers.scores:
        own = {tuple(end for _, end in task.ends_of(edge)): value for edge, value in score.items()}
        assert min(own[pair] for pair in ends) > max(value for pair, value in own.items() if pair not in ends)
    assert score_links(answers.scores, task, 0)[0] > 0.5
