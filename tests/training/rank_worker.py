"""Trains in two processes for test_distributed.py, and stores what came of it: python rank_worker.py FOLDER.

Importing takes longer than training, so one process imports everything and splits into two for each job, before it
has computed anything.
"""

import json
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

from safetensors.torch import save_file

from gflowexplainer.choices import Objective
from gflowexplainer.errors import ClusterError
from gflowexplainer.settings import Settings
from gflowexplainer.training.distributed import launch

sys.path.insert(0, str(Path(__file__).parent))
from test_trainer import PREDICTION, graph_trainer, node_trainer

PAPER = Settings.preset("paper", epochs=2, max_nodes=5).to_dict()
FEW = {"epochs": 2}
SCENARIOS = {
    "default": (node_trainer, {}),
    "prediction": (node_trainer, PREDICTION),
    "paper": (node_trainer, PAPER),
    "paper on graphs": (graph_trainer, PAPER),
    "graphs": (graph_trainer, FEW),
    "locator": (graph_trainer, {**FEW, "start": "locator", "objective": "detailed_balance", "locator_share": 0.6}),
    **{
        objective: (node_trainer, {**FEW, "objective": objective, "measure": "uniform"})
        for objective in Objective.names()
    },
}
"""What is trained, in batches that do not divide evenly: of 3 nodes, and of 2, 2 and 1 graphs."""
INTERRUPTED = "default"
"""The scenario in which a process is killed, after so many updates:"""
KILLED_AT = 3


def double(trainer):
    """Lets a network learn in double precision, so that rounding does not grow into other choices."""
    trainer.network.double()
    given = trainer.sampler.network_inputs
    embedding = None if given.embedding is None else given.embedding.double()
    trainer.sampler.network_inputs = replace(given, features=given.features.double(), embedding=embedding)
    return trainer


def train(name, fabric=None, folder=None, callback=None):
    make, settings = SCENARIOS[name]
    trainer = double(make(**settings, fabric=fabric))
    records = []

    def keep(trainer, record):
        records.append(dict(record))
        if callback is not None:
            callback(trainer, record)

    trainer.run(folder, progress=False, callback=keep, checkpoint_seconds=0)
    return trainer, records


def train_everything(folder):
    fabric = launch(devices=2)
    for name in SCENARIOS:
        trainer, records = train(name, fabric)
        calls = trainer.sampler.predictor.num_evaluations
        (folder / f"{name}-{fabric.global_rank}.json").write_text(json.dumps([calls, records]))
        tensors = {key: value.clone() for key, value in trainer.network.state_dict().items()}
        save_file(tensors, folder / f"{name}-{fabric.global_rank}.safetensors")


def train_in(folder, victim=None):
    fabric = launch(devices=2)

    def die(trainer, _record):
        if trainer.iteration == KILLED_AT and fabric.global_rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)

    # Machines may have no common disk: only the first process sees the folder.
    seen = folder if fabric.global_rank == 0 else folder / "elsewhere"
    trainer, _ = train(INTERRUPTED, fabric, seen, die)
    save_file(dict(trainer.network.state_dict()), folder / f"resumed-{fabric.global_rank}.safetensors")


def in_two_processes(folder, job, *arguments):
    """Runs a job in two processes; gives how each ended and what it said."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"NODE_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    children = []
    for rank in range(2):
        child = os.fork()
        if not child:
            os.environ["LOCAL_RANK"] = str(rank)
            signal.alarm(100)  # one that waited without end would end here, by another signal than the test expects
            error = os.open(folder / f"said-{rank}", os.O_WRONLY | os.O_CREAT)
            os.dup2(error, 2)
            code = 1
            try:
                job(folder, *arguments)
                code = 0
            except ClusterError as lost:
                print(lost, file=sys.stderr)
            except Exception:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return codes, [(folder / f"said-{rank}").read_text() for rank in range(2)]


def main(folder):
    ends = {
        "scenarios": in_two_processes(folder / "scenarios", train_everything),
        "killed 0": in_two_processes(folder / "killed 0", train_in, 0),
        "killed 1": in_two_processes(folder / "killed 1", train_in, 1),
        "resumed 1": in_two_processes(folder / "killed 1", train_in),
    }
    (folder / "ends.json").write_text(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
