"""What gradients count beside losses: by what was measured, and where a node is only on the way to others."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import CheckpointError, GFlowExplainerError
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.calibration import random_subgraphs
from gflowexplainer.rewards.gradient_share import fit_share
from gflowexplainer.rewards.gradients import integrated_gradients
from gflowexplainer.rewards.measuring import sums_over
from gflowexplainer.settings import Settings
from gflowexplainer.testing import random_graph

CONFIG = {"mode": "regression", "task_level": "node", "return_type": "raw"}


@pytest.mark.parametrize(("by_loss", "by_gradient", "wanted"), [(3, 1, 0.25), (0, 2, 1), (2, 0, 0), (2, -1, 0)])
def test_the_share_is_that_of_the_weights(by_loss, by_gradient, wanted) -> None:
    instances = Instances.of_graphs([random_graph(14, 0.2, seed=seed) for seed in range(6)])
    subgraphs = random_subgraphs(instances, Settings(max_nodes=6), 16, Stream.measuring)
    generator = torch.Generator().manual_seed(0)
    lost, added = torch.randn(2, instances.num_nodes, generator=generator, dtype=torch.double)
    measured = by_loss * sums_over(subgraphs, lost) + by_gradient * sums_over(subgraphs, added + 0.4) + 5
    share, usual = fit_share(subgraphs, measured, lost, added)
    assert share == pytest.approx(wanted, abs=0.01)
    assert usual == pytest.approx(0.4 if wanted else 0, abs=0.05)


def test_features_of_another_width_are_refused() -> None:
    instances = Instances.of_graphs([random_graph(6, 0.3)])
    inputs = TaskInputs.of(Predictor(Sums(), level="graph", mode="regression", num_hops=1), instances)
    with pytest.raises(CheckpointError, match="fit again"):
        integrated_gradients(inputs, torch.zeros(1))


class Sums(nn.Module):
    """The value of a graph is the sum of the first feature over its nodes."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return torch.zeros(int(batch.max()) + 1, 1).index_add(0, batch, x[:, :1])


def test_what_gradients_are_relative_to_is_added_again(tmp_path) -> None:
    """Of a sum, losses are exact; gradients say the same, less what a node of mean features adds.

    That mean, about 2, is estimated from some contexts of eight graphs, to about a twentieth.
    """
    graphs = [random_graph(10, 0.2, seed=seed) for seed in range(8)]
    for graph in graphs:
        graph.x = graph.x + 2
    explainer = GFlowExplainer(inference="search", evidence="own", num_hops=1, seed=0)
    config = CONFIG | {"task_level": "graph"}
    explainer.fit(Sums(), graphs, model_config=config, progress=False)
    assert explainer.evidence_report().gradient_share > 0.2
    for graph, found in zip(graphs, explainer.explain(Sums(), graphs, model_config=config), strict=True):
        assert torch.allclose(found.node_contributions.view(-1).float(), graph.x[:, 0], atol=0.15)
    explainer.save(tmp_path)
    again = GFlowExplainer.load(tmp_path)
    assert again.evidence_report() == explainer.evidence_report()
    one, other = (who.explain(Sums(), graphs[:1], model_config=config)[0] for who in (explainer, again))
    assert torch.equal(one.node_mask, other.node_mask)
    for graph in graphs:
        graph.x = graph.x[:, :2]
    with pytest.raises(GFlowExplainerError):
        again.explain(Sums(), graphs, model_config=config)


class Reads(nn.Module):
    """The value of a node is the sum of the first feature over all that reaches it in three steps."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        reached = torch.eye(x.size(0))
        for _ in range(3):
            reached = reached + torch.zeros_like(reached).index_add(0, edge_index[1], reached[edge_index[0]])
        return reached.sign() @ x[:, :1]


def tree() -> Data:
    """Stars of paths: what counts lies at the ends, two steps behind nodes that are only on the way."""
    hubs, arms = 12, 4
    edges, x = [], []
    for _ in range(hubs):
        hub = len(x)
        x.append([0.0, 1.0, 0.0])
        for arm in range(arms):
            first = len(x)
            x += [[0.0, 0.0, 1.0], [0.0, 0.0, 0.5], [(1.0, -2.0, 0.0, 0.0)[arm], 0.3, 0.0]]
            edges += [(hub, first), (first, first + 1), (first + 1, first + 2)]
    one, other = torch.tensor(edges).t()
    return Data(x=torch.tensor(x), edge_index=torch.stack([torch.cat([one, other]), torch.cat([other, one])]))


def test_a_node_that_is_only_on_the_way_adds_less_than_what_it_leads_to() -> None:
    data, hubs = tree(), list(range(0, 12 * 13, 13))
    explainer = GFlowExplainer(inference="search", evidence="own", num_hops=3, seed=0)
    explainer.fit(Reads(), data, index=hubs, model_config=CONFIG, progress=False)
    report = explainer.evidence_report()
    assert report.gradient_share > 0.3
    assert "by gradients" in str(report)
    alone, among = explainer.explain(Reads(), data, index=[13])[0], explainer.explain(Reads(), data, index=hubs)[1]
    assert torch.equal(alone.node_mask, among.node_mask)
    mask = alone.node_mask[:, 0]
    # Ends that count before the nodes on the way to them, of which without gradients either is needed as much.
    assert mask[13 + 3] > 1.2 * mask[13 + 2]
    assert mask[13 + 6] > 1.2 * mask[13 + 5]
