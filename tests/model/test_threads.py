"""One explainer and one model from many threads give what they give alone."""

import threading

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from gflowexplainer import GFlowExplainer
from gflowexplainer.testing import GraphModel, cycle, house, random_graph

QUICK = {"max_nodes": 4, "epochs": 3, "num_contexts": 4, "num_samples": 16}
THREADS = 4


class Dropping(nn.Module):
    """Says something else in training mode, remembers graphs, and has a buffer that changes in training mode."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = GCNConv(3, 8, cached=True), GCNConv(8, 3)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)

    def forward(self, x, edge_index):
        hidden = self.drop(self.norm(self.first(x, edge_index)).relu())
        return 3 * self.second(hidden, edge_index)


def at_once(work):
    """Lets threads begin together; returns what each found, or raises what one raised."""
    found, errors, gate = {}, [], threading.Barrier(THREADS)

    def run(number):
        gate.wait()
        try:
            found[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def content(explanation):
    return [
        (s.nodes, round(s.probability, 9), [round(v, 5) for v in (*s.prediction_only, *s.prediction_without)])
        for s in explanation.subgraphs
    ]


@pytest.mark.parametrize("fitted", [True, False])
def test_threads_find_what_one_finds_alone(fitted):
    data, model = random_graph(20, 0.1), Dropping().train()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    algorithm = GFlowExplainer(**QUICK)
    if fitted:
        algorithm.fit(model, data, [0, 1, 2], progress=False)
    work = [[4 + number, 9 + number] if fitted else [4 + number] for number in range(THREADS)]
    alone = [[content(e) for e in algorithm.explain(model, data, index, progress=False)] for index in work]
    before = torch.random.get_rng_state()
    for _ in range(3):
        found = at_once(lambda i: [content(e) for e in algorithm.explain(model, data, work[i], progress=False)])
        assert [found[i] for i in range(THREADS)] == alone
    assert all(module.training for module in model.modules())
    assert torch.equal(torch.random.get_rng_state(), before)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name])


def test_threads_with_models_of_their_own_and_one_explainer():
    graphs = [house(), cycle(6)]
    models = [GraphModel(seed=number) for number in range(THREADS)]
    algorithm = GFlowExplainer(**QUICK)

    def work(number):
        return [content(e) for e in algorithm.explain(models[number], graphs, progress=False)]

    alone = [work(number) for number in range(THREADS)]
    found = at_once(work)
    assert [found[i] for i in range(THREADS)] == alone


def test_fits_at_the_same_time_come_to_the_same_weights():
    data, model = random_graph(16, 0.1), Dropping()

    def work(number):
        fitted = GFlowExplainer(**QUICK, seed=number).fit(model, data, [0, 1, 2], progress=False)
        return fitted._fitted.sampler.network

    alone = [work(number) for number in range(THREADS)]
    found = at_once(work)
    for number in range(THREADS):
        for name, value in alone[number].items():
            assert torch.equal(value, found[number][name]), name
