"""Contributions of features against shapiq and against values worked out by hand."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.utils import to_undirected

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import ConfigError
from gflowexplainer.inference.shapley_values import shapley_values
from gflowexplainer.testing import EdgeFeatureModel, GraphModel, NodeModel, random_graph

GRAPH = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


def quick(num_hops=2):
    return GFlowExplainer(seed=0, epochs=4, num_samples=16, num_hops=num_hops)


@pytest.mark.parametrize("players", [3, 6])
def test_exact_values_are_those_of_shapiq(players):
    shapiq = pytest.importorskip("shapiq")
    weights = np.random.default_rng(players).normal(size=(players, players))

    def game(coalitions):
        rows = np.asarray(coalitions, dtype=float)
        return np.tanh(np.einsum("qi,ij,qj->q", rows, weights, rows))

    ours = shapley_values(players, lambda c: torch.from_numpy(game(c.numpy())), evaluations=4096)
    theirs = shapiq.ExactComputer(game, n_players=players)("SV", order=1)
    for player in range(players):
        assert float(ours.value[player]) == pytest.approx(theirs[(player,)], abs=1e-9)
    sampled = shapley_values(players, lambda c: torch.from_numpy(game(c.numpy())), evaluations=1)
    assert float(sampled.value.sum()) == pytest.approx(ours.whole - ours.bare)


def test_sampled_values_come_near_the_exact_ones():
    weights = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).double()

    def game(coalitions):
        rows = coalitions.double()
        return torch.sigmoid(((rows @ weights) * rows).sum(dim=1) / 3)

    exact = shapley_values(8, game, evaluations=1 << 8)
    sampled = shapley_values(8, game, evaluations=200)
    # Within five standard errors of what was sampled.
    assert ((sampled.value - exact.value).abs() <= 5 * sampled.error + 1e-9).all()
    assert float(sampled.error.max()) < 0.02
    assert exact.error.max() == 0


def test_the_model_itself_with_features_replaced_gives_the_contributions():
    shapiq = pytest.importorskip("shapiq")
    data, model = random_graph(8, seed=1), NodeModel(seed=1).eval()
    e = quick().explain(model, data, [2], progress=False)[0]
    reference = [0.5, -1.0, 2.0]
    found = e.feature_contributions(reference=reference)
    inside = list(e.subgraphs[0].nodes)

    def game(coalitions):
        values = []
        for row in np.asarray(coalitions, dtype=bool):
            x = data.x.clone()
            for feature in range(3):
                if not row[feature]:
                    x[inside, feature] = reference[feature]
            with torch.no_grad():
                values.append(float(model(x, data.edge_index)[2].softmax(dim=0)[e.explained_class]))
        return np.array(values)

    truth = shapiq.ExactComputer(game, n_players=3)("SV", order=1)
    assert found.exact
    for feature in range(3):
        assert found.columns[feature] == pytest.approx(truth[(feature,)], abs=1e-5)
    assert found.whole == pytest.approx(float(game([[1, 1, 1]])[0]), abs=1e-5)


class TwoFeatures(nn.Module):
    """A value: 2 times feature 0 plus 3 times feature 2, summed over nodes."""

    def forward(self, x, edge_index, batch=None):
        batch = x.new_zeros(x.size(0), dtype=torch.long) if batch is None else batch
        value = 2 * x[:, 0] + 3 * x[:, 2]
        return x.new_zeros(int(batch.max()) + 1, 1).index_add_(0, batch, value[:, None])


def test_entries_of_a_linear_model_are_worth_weight_times_value():
    data = random_graph(6, width=4)
    e = quick().explain(TwoFeatures(), [data], model_config=GRAPH | {"mode": "regression"}, progress=False)[0]
    found = e.feature_contributions(reference=0.0, each=True)
    weight = [2.0, 0.0, 3.0, 0.0]
    for node, feature, value in found.rows:
        assert value == pytest.approx(weight[feature] * float(data.x[node, feature]), abs=1e-4)
    assert {node for node, _, _ in found.rows} == set(e.subgraphs[0].nodes)


def test_features_of_edges_by_their_name():
    data = Data(x=torch.randn(4, 3), edge_index=to_undirected(torch.tensor([[0, 1, 2], [1, 2, 3]])))
    data.edge_attr = torch.randn(6, 2)
    model = EdgeFeatureModel().eval()
    e = quick().explain(model, [data], model_config=GRAPH | {"mode": "regression"}, progress=False)[0]
    found = e.feature_contributions("edge_attr", reference=0.0)
    inside = set(e.subgraphs[0].nodes)
    bare = data.edge_attr.clone()
    bare[[i for i, (u, v) in enumerate(data.edge_index.t().tolist()) if u in inside and v in inside]] = 0
    with torch.no_grad():
        lost = float(model(data.x, data.edge_index, data.edge_attr) - model(data.x, data.edge_index, bare))
    assert sum(found.columns) == pytest.approx(lost, abs=1e-5)
    with pytest.raises(ConfigError, match="takes no 'colour'"):
        e.feature_contributions("colour")


@pytest.mark.parametrize(("kind", "shape"), [("attributes", (8, 3)), ("common_attributes", (1, 3))])
def test_pyg_gets_masks_of_features(kind, shape, tmp_path):
    data, model = random_graph(8), NodeModel()
    config = GRAPH | {"task_level": "node"}
    explainer = Explainer(
        model, quick(), explanation_type="model", node_mask_type=kind, edge_mask_type="object", model_config=config
    )
    e = explainer(data.x, data.edge_index, index=1)
    assert tuple(e.node_mask.shape) == shape
    assert e.validate(raise_on_error=True)
    total = e.feature_contributions(each=kind == "attributes")
    assert float(e.node_mask.sum()) == pytest.approx(total.whole - total.bare, abs=1e-4)
    # Probabilities of nodes are still there.
    assert e.node_probability().shape == (8,)
    assert e.node_probability()[1] == pytest.approx(1)
    e.visualize_feature_importance(str(tmp_path / "features.png"))
    assert (tmp_path / "features.png").stat().st_size > 0


def test_wrong_reference_values_are_refused():
    e = quick().explain(GraphModel(), [random_graph(6)], model_config=GRAPH, progress=False)[0]
    with pytest.raises(ConfigError, match="1 or 3"):
        e.feature_contributions(reference=[1.0, 2.0])
    with pytest.raises(ConfigError, match="at least 1"):
        e.feature_contributions(evaluations=0)


def test_a_bar_chart_escapes_names():
    e = quick().explain(GraphModel(), [random_graph(6)], model_config=GRAPH, progress=False)[0]
    drawn = e.feature_contributions().bars(["<b>", "a", "c"])
    assert "<b>" not in drawn
    assert "&lt;b&gt;" in drawn


def test_the_summary_repeats_the_numbers_of_the_model():
    e = quick().explain(NodeModel(), random_graph(8), [3], progress=False)[0]
    summary = e.summary()
    text, values = str(summary), summary.to_dict()
    assert f"class {e.explained_class}" in text
    assert values["prediction"] == e.whole_prediction
    found = e.counterfactual()
    assert (str(found) in text) if found else ("No set of nodes" in text)
    best = e.feature_contributions().top(1)[0]
    assert values["features"][0] == {"feature": best[0], "contribution": best[1]}
