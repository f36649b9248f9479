import pytest
import torch

from gflowexplainer.flow.locator import Locator, locator_loss
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.testing import house, random_graph


def test_ratings_are_probabilities_within_each_graph():
    instances = Instances.of_graphs([house(), random_graph(7)])
    locator = Locator(3)
    rating = locator(instances, instances.x)
    for begin, end in zip(instances.ptr[:-1], instances.ptr[1:], strict=True):
        assert float(rating[begin:end].exp().sum()) == pytest.approx(1)
    start = locator.start(instances, instances.x)
    assert start[0] == rating[:5].argmax()
    assert start[1] == 5 + rating[5:].argmax()


def test_the_architecture_is_the_papers():
    widths = [layer.out_features for layer in Locator(10).mlp if isinstance(layer, torch.nn.Linear)]
    assert widths == [64, 8, 1]


def test_the_loss_is_torchs_kl_divergence():
    rating = torch.randn(6, generator=torch.Generator().manual_seed(0))
    score = torch.randn(6, generator=torch.Generator().manual_seed(1))
    graph = torch.tensor([0, 0, 0, 2, 2, 2])
    log_rating = torch.cat([rating[:3].log_softmax(0), rating[3:].log_softmax(0)])
    expected = sum(
        torch.nn.functional.kl_div(log_rating[part], score[part].softmax(0), reduction="sum")
        for part in (slice(0, 3), slice(3, 6))
    )
    assert float(locator_loss(log_rating, score, graph, 3)) == pytest.approx(float(expected / 2), rel=1e-5)


def test_training_finds_the_best_start():
    instances = Instances.of_graphs([random_graph(8, seed=seed) for seed in range(4)])
    score = 4 * instances.x[:, 0]
    torch.manual_seed(0)
    locator = Locator(3)
    optimizer = torch.optim.Adam(locator.parameters(), 1e-2)
    for _ in range(200):
        optimizer.zero_grad()
        loss = locator_loss(locator(instances, instances.x), score, instances.owner, 4)
        loss.backward()
        optimizer.step()
    best = torch.stack([score[a:b].argmax() + a for a, b in zip(instances.ptr[:-1], instances.ptr[1:], strict=True)])
    assert torch.equal(locator.start(instances, instances.x), best)
    assert float(loss.detach()) < 0.05
