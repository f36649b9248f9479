import pytest
import torch
from torch_geometric.explain import Explanation

from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case, Report


def test_wrong_lengths_are_named(house_case):
    with pytest.raises(ConfigError, match=r"'truth' of 'a' has shape \[5\].*12 columns"):
        house_case("a", truth=torch.ones(5, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"others\['peer'\].*shape \[12, 1\]"):
        house_case("a", others={"peer": torch.ones(12, 1)})
    with pytest.raises(ConfigError, match="'labels' of 'a' has 2 entries for 5 nodes"):
        house_case("a", labels=["x", "y"])
    with pytest.raises(ConfigError, match="'words' of 'a' has 6 entries"):
        house_case("a", words=list("abcdef"))


def test_wrong_explanations_are_named(house_case):
    with pytest.raises(ConfigError, match="got Explanation"):
        Case("a", Explanation())
    explanation = house_case().explanation
    del explanation.edge_index
    with pytest.raises(ConfigError, match="does not know its graph"):
        Case("a", explanation)


def test_reports_need_cases_with_names_of_their_own(house_case):
    with pytest.raises(ConfigError, match="nothing to report"):
        Report("nothing", [])
    with pytest.raises(ConfigError, match="2 cases are called 'node 4'"):
        Report("twice", [house_case(), house_case()])


def test_what_an_explanation_says_of_the_whole_graph(house_case):
    explanation = house_case().explanation
    assert explanation.whole_prediction == pytest.approx((0.1, 0.9))
    assert explanation.explained_class == 1
    del explanation.prediction, explanation.target
    assert explanation.whole_prediction is None
    assert explanation.explained_class is None
    assert (explanation.error, explanation.num_samples) == (0.03, 16)
