"""Two processes come to what one comes to, and a process that is killed leaves what the others go on from."""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from gflowexplainer.choices import Objective
from gflowexplainer.errors import ConfigError
from gflowexplainer.flow.objectives import Loss
from gflowexplainer.training.checkpoint import METRICS
from gflowexplainer.training.distributed import Ranks, launch

pytest.importorskip("lightning_fabric")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")

WORKER = Path(__file__).parent / "rank_worker.py"
sys.path.insert(0, str(WORKER.parent))
from rank_worker import INTERRUPTED, KILLED_AT, SCENARIOS, train  # noqa: E402

sys.path.remove(str(WORKER.parent))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the worker has trained."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(WORKER), str(folder)], env=environment, check=True, timeout=400)
    return folder


@cache
def alone(name):
    """What one process comes to, and its records."""
    return train(name)


def end_of(folder, job):
    """How the two processes of a job ended, and what they said."""
    return json.loads((folder / "ends.json").read_text())[job]


@pytest.mark.parametrize("name", SCENARIOS)
def test_two_processes_come_to_what_one_comes_to(folder, name):
    codes, said = end_of(folder, "scenarios")
    assert codes == [0, 0], said
    single, records = alone(name)
    make, settings = SCENARIOS[name]
    untrained = make(**settings).network.state_dict()
    first, second = (load_file(folder / "scenarios" / f"{name}-{rank}.safetensors") for rank in (0, 1))
    # The last bits differ where the model is evaluated for every state, in single precision and in other batches; Adam
    # makes much of them where a gradient is nearly zero.
    near = {"rtol": 1e-4, "atol": 1e-5}
    for key, value in single.network.state_dict().items():
        assert torch.equal(first[key], second[key]), key
        assert torch.allclose(first[key], value, **near), key
    assert any(not torch.allclose(first[key], value.double(), rtol=1e-2) for key, value in untrained.items())
    stored = [json.loads((folder / "scenarios" / f"{name}-{rank}.json").read_text()) for rank in (0, 1)]
    for calls, curve in stored:
        # What one process has asked of the model, the other does not ask again.
        assert calls <= single.sampler.predictor.num_evaluations
        assert len(curve) == len(records)
        for mine, other in zip(records, curve, strict=True):
            assert without_time(other) == pytest.approx(without_time(mine), rel=1e-4)


def without_time(record):
    return {key: value for key, value in record.items() if key != "seconds"}


def test_a_process_alone_asks_the_model_for_its_share_only(folder):
    """With the reward of the paper, which asks the model about every subgraph."""
    calls = [json.loads((folder / "scenarios" / f"prediction-{rank}.json").read_text())[0] for rank in (0, 1)]
    assert all(0 < each < alone("prediction")[0].sampler.predictor.num_evaluations for each in calls)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_leaves_what_the_others_go_on_from(folder, tmp_path, victim):
    codes, said = end_of(folder, f"killed {victim}")
    assert codes[victim] == -signal.SIGKILL
    assert codes[1 - victim] == 1
    assert f"Process {1 - victim} of 2 waits in vain for the others" in said[1 - victim]
    assert "Traceback" not in said[1 - victim]
    whole = alone(INTERRUPTED)[0]
    assert whole.iteration > KILLED_AT
    place = folder / f"killed {victim}"
    if victim == 1:
        codes, said = end_of(folder, "resumed 1")
        assert codes == [0, 0], said
        resumed = load_file(place / "resumed-1.safetensors")
        # The same bits as two processes that nobody killed.
        for key, value in load_file(folder / "scenarios" / f"{INTERRUPTED}-0.safetensors").items():
            assert torch.equal(resumed[key], value), key
    else:
        # The state of a training belongs to no number of processes: one alone goes on as well.
        before = json.loads((place / METRICS).read_text().splitlines()[-1])["iteration"]
        assert before == KILLED_AT - 2  # killed before it stored the third update
        resumed = train(INTERRUPTED, folder=place)[0].network.state_dict()
    lines = [json.loads(line)["iteration"] for line in (place / METRICS).read_text().splitlines()]
    assert lines == list(range(whole.iteration))
    for key, value in whole.network.state_dict().items():
        assert torch.allclose(resumed[key], value, rtol=1e-4, atol=1e-5), key


def test_one_process_alone_changes_nothing():
    ranks, batch = Ranks(), torch.arange(5)
    assert ranks.first
    assert torch.equal(ranks.mine(batch), batch)
    assert ranks.rows(batch)[0] is batch
    total = torch.tensor(21.0, requires_grad=True)
    (part,), (mean,) = ranks.mean(Loss(total, 7))
    assert float(part.detach()) == mean == 3.0
    part.backward()
    assert float(total.grad) == pytest.approx(1 / 7)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_shares_make_the_batch(size):
    batch, shares = torch.arange(10, 15), []
    for rank in range(size):
        ranks = Ranks()
        ranks.rank, ranks.size = rank, size
        shares.append(ranks.mine(batch))
    assert sorted(torch.cat(shares).tolist()) == batch.tolist()
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("objective", Objective.names())
@pytest.mark.parametrize("level", ["node", "graph"])
def test_terms_are_what_an_objective_takes_the_mean_over(objective, level):
    """Sums and terms of parts add up to those of the whole."""
    if level == "graph" and objective in ("detailed_balance", "subtrajectory_balance"):
        pytest.skip("needs a start node")
    make = SCENARIOS["default" if level == "node" else "graphs"][0]
    trainer = make(objective=objective, measure="uniform")
    every = torch.arange(len(trainer.instances))
    parts = [trainer.sampler.sample(some.repeat_interleave(4), 5) for some in (every, *every.split(2))]
    whole, *losses = [trainer.sampler.objective(part) for part in parts]
    assert sum(int(loss.terms) for loss in losses) == int(whole.terms)
    assert sum(float(loss.total.detach()) for loss in losses) == pytest.approx(float(whole.total.detach()), rel=1e-5)
    assert float(whole.mean.detach()) == pytest.approx(float(whole.total.detach()) / int(whole.terms))


def test_as_many_processes_as_asked_for_must_have_been_started(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ConfigError, match=r"4 processes are to train .* but 3 were started.*--nnodes 2"):
        launch(devices=2, nodes=2)


def test_without_lightning_fabric_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    with pytest.raises(ConfigError, match=r"gflowexplainer\[distributed\]"):
        launch(devices=2)
