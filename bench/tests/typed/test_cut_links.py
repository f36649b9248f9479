"""A link that is cut out: the model says what it says of the whole graph, with and without edges."""

import pytest
import torch

from gflowbench.explainers.masked_model import masks_alone
from gflowbench.typed import cut_links
from gflowbench.typed.cut_links import cut_link
from gflowbench.typed.motif_links import load_motif_links


def test_copies_are_scored_as_the_whole_graph_without_edges(monkeypatch):
    monkeypatch.setattr(cut_links, "MOST_MESSAGES", 200)  # a few copies at a time
    task = load_motif_links(0).every(20)
    for link, around in zip(task.test.t(), task.around, strict=True):
        kept = torch.rand(9, len(around), generator=torch.Generator().manual_seed(0)) < 0.7
        kept[0] = True
        found = cut_link(task, link, around).scores(kept)
        for row, score in zip(kept, found, strict=True):
            stays = torch.ones(task.graph.num_edges, dtype=torch.bool)
            stays[[place for _, place in around]] = row
            with torch.no_grad():
                wanted = task.model(task.graph.x, task.graph.edge_index[:, stays], link[:, None])
            assert float(score) == pytest.approx(float(wanted), abs=1e-4)


def test_masks_weigh_messages_of_a_typed_link(shared_attributes):
    task = shared_attributes
    cut = cut_link(task, task.test[:, 0], task.around[0])
    mask = torch.tensor([1.0, 0.5, 1.0, 0.25, 1.0])  # the user's attribute 1 and the item's
    with masks_alone(task.model):
        assert float(cut.masked_score(mask)) == pytest.approx(0.5 * 0.25)
    assert cut.scores(torch.ones(2, 5, dtype=torch.bool)).tolist() == [1.0, 1.0]
    assert cut.scores(torch.zeros(1, 5, dtype=torch.bool)).tolist() == [0.0]
