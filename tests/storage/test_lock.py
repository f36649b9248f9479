"""One writer a folder: another process and another thread are told; the same thread may ask again."""

import subprocess
import sys
import threading

import pytest

from gflowexplainer import GFlowExplainer
from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.checkpoints import write_checkpoint
from gflowexplainer.storage.lock import folder_lock
from gflowexplainer.testing import NodeModel, random_graph

HOLD = """
import sys
from gflowexplainer.storage.lock import folder_lock
with folder_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other_process(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_process_is_told_who_writes_and_a_killed_one_lets_go(tmp_path, other_process):
    with pytest.raises(CheckpointError, match=f"Process {other_process.pid} on .* is writing to"):
        GFlowExplainer(max_nodes=3, epochs=1).fit(NodeModel(), random_graph(10), [0], folder=tmp_path, progress=False)
    other_process.kill()
    other_process.wait()
    with folder_lock(tmp_path):
        pass


def test_another_thread_is_told_and_the_same_one_may_ask_again(tmp_path):
    said = []

    def write():
        try:
            with folder_lock(tmp_path):
                said.append("wrote")
        except CheckpointError as error:
            said.append(str(error))

    with folder_lock(tmp_path), folder_lock(tmp_path):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert "Another thread" in said[0]
    write()
    assert said[1] == "wrote"


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
def test_folders_that_cannot_be(tmp_path, name):
    with pytest.raises(CheckpointError, match="cannot be made"):
        GFlowExplainer(max_nodes=3, epochs=1).fit(
            NodeModel(), random_graph(10), [0], folder=str(tmp_path / name), progress=False
        )


def test_a_lock_that_is_a_link_or_somebody_elses_file_is_left_alone(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("do not touch")
    for name in ("link", "file"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / ".lock").symlink_to(precious)
    (tmp_path / "file" / ".lock").write_text("somebody else's")
    for name in ("link", "file"):
        with pytest.raises(CheckpointError, match="is no lock file of this package"), folder_lock(tmp_path / name):
            pass
    assert precious.read_text() == "do not touch"
    assert (tmp_path / "file" / ".lock").read_text() == "somebody else's"


def test_saving_into_a_folder_where_another_process_writes_is_refused(tmp_path, other_process):
    with pytest.raises(CheckpointError, match="is writing to"):
        write_checkpoint(tmp_path / "explainer.safetensors", {}, {})
    write_checkpoint(tmp_path / "elsewhere" / "explainer.safetensors", {}, {})
    assert not (tmp_path / "elsewhere" / ".lock").exists()
