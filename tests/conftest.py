"""Explanations worked out by hand, and a browser to look at them, where one is installed."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import ModelConfig

from gflowexplainer import SubgraphExplanation
from gflowexplainer.errors import ModelError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.findings import Certificate, Part, Parts
from gflowexplainer.explanation.ranked import RankedSubgraphs
from gflowexplainer.report import Case
from gflowexplainer.testing import house

Ranked = list[tuple[tuple[int, ...], float]]
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&'\"{{ 7*7 }}"


def pytest_configure(config: pytest.Config) -> None:
    """Hands files to processes in their order: files of few tests are often the longest, and should not come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


class _Unreachable:
    """A model that can be certified, and has changed since for everything else."""

    def certificate(self, _: int) -> Certificate:
        return Certificate(0.2, 0.05, 12)

    def doubts(self, _: int) -> tuple[str, ...]:
        return ()

    def parts(self, _: int) -> Parts:
        raise ModelError("The model has changed.")

    counterfactual = features = lambda self, _, **question: self.parts(0)


def explain_by_hand(
    graph: Data,
    ranked: Ranked,
    node: int | None,
    *,
    mode: str = "multiclass_classification",
    parts: list[tuple[int, ...]] | None = None,
    holds: bool = True,
    studies: dict[str, Any] | None = None,
    predictions: Any = None,
) -> SubgraphExplanation:
    """Makes an explanation whose subgraphs have the given probabilities; the masks follow from them.

    It knows its ``parts`` and what it was asked (``studies``, by question), where these are given.
    """
    regression = mode == "regression"
    only, without = predictions or (((1.5,), (-0.5,)) if regression else ((0.2, 0.8), (0.6, 0.4)))
    members = torch.zeros(len(ranked), graph.num_nodes)
    for row, (nodes, _) in zip(members, ranked, strict=True):
        row[list(nodes)] = 1
    weight = torch.tensor([p for _, p in ranked])
    source, target = graph.edge_index
    fields: dict[str, Any] = {
        "node_mask": (weight @ members)[:, None],
        "edge_mask": weight @ (members[:, source] * members[:, target]),
    }
    rows = 1 if node is None else graph.num_nodes
    if regression:
        fields |= {"prediction": torch.full((rows, 1), 2.25), "target": torch.full((rows, 1), 2.25)}
    else:
        fields |= {"prediction": torch.tensor([[0.1, 0.9]]).log().repeat(rows, 1)}
        fields |= {"target": torch.ones(rows, dtype=torch.long)}
    known: dict[str, Any] = {
        "subgraphs": RankedSubgraphs.of((nodes, p, 0.9 * p, only, without) for nodes, p in ranked),
        **(studies or {}),
    }
    if parts is not None:
        found = tuple(Part(nodes, only, without) for nodes in parts)
        known["parts"] = Parts(found, only, without, 0.93, 0.4, holds)
    answer = SubgraphDistribution(node, num_samples=16, error=0.03, known=known, source=_Unreachable())
    explanation = SubgraphExplanation.of(answer, x=graph.x, edge_index=graph.edge_index, **fields)
    explanation._model_config = ModelConfig(mode, "graph" if node is None else "node", "raw")
    return explanation


def joins(explanation: SubgraphExplanation, *pairs: tuple[int, int]) -> Tensor:
    """Marks some edges in both directions, bool ``[E]``."""
    wanted = {frozenset(pair) for pair in pairs}
    return torch.tensor([frozenset(pair) in wanted for pair in explanation.edge_index.t().tolist()])


@pytest.fixture
def house_case() -> Callable[..., Case]:
    """A house of which {4, 0, 1} has probability 0.75 and {4, 0} 0.25; node 4 is explained."""

    def make(name: str = "node 4", **fields: Any) -> Case:
        return Case(name, explain_by_hand(house(), [((4, 0, 1), 0.75), ((4, 0), 0.25)], 4), **fields)

    return make


FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("there is no chromium with chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()
