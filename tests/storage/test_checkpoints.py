"""Checkpoints: whole or not at all, and never a foreign or damaged one."""

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from gflowexplainer.errors import CheckpointError
from gflowexplainer.storage.checkpoints import FORMAT, checksum, read_checkpoint, write_checkpoint
from gflowexplainer.storage.files import write_bytes

SECTIONS = {
    "network": {"weight": torch.tensor([[1.5, -2.0]]), "layer/bias": torch.tensor([2.5, 1.0])},
    "memory": {
        "keys": torch.tensor([2**62, -1]),
        "flags": torch.tensor([True, False]),
        "number": torch.tensor(3.25, dtype=torch.double),
        "nothing": torch.empty(0, 4),
    },
}
META = {"iteration": 7, "settings": {"beta": 20.0, "reward": "context"}, "names": ["ä", "b"], "none": None}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, SECTIONS, META)
    return path


def assert_equal(ours: dict[str, dict[str, Tensor]], theirs: dict[str, dict[str, Tensor]]) -> None:
    assert {label: set(part) for label, part in ours.items()} == {label: set(part) for label, part in theirs.items()}
    for label, part in theirs.items():
        for name, tensor in part.items():
            torch.testing.assert_close(ours[label][name], tensor, rtol=0, atol=0)


def test_what_is_written_is_read(file: Path) -> None:
    sections, meta = read_checkpoint(file)
    assert_equal(sections, SECTIONS)
    assert meta == META


def test_the_same_contents_are_the_same_bytes(file: Path) -> None:
    before = file.read_bytes()
    for _ in range(20):
        write_checkpoint(file, SECTIONS, META)
        assert file.read_bytes() == before
    assert before.index(FORMAT.encode()) < before.index(b'meta":') < before.index(b"network/weight")


def test_any_reader_of_safetensors_reads_it(file: Path) -> None:
    assert_equal(
        {"": load_file(file)}, {"": {f"{a}/{b}": tensor for a, part in SECTIONS.items() for b, tensor in part.items()}}
    )


def test_folders_are_made_and_odd_tensors_kept(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.arange(6.0).view(2, 3))
    path = tmp_path / "a" / "b" / "c.safetensors"
    write_checkpoint(path, {"odd": {"turned": weight.t(), "part": weight[:, 1]}, "empty": {}}, {})
    assert_equal(read_checkpoint(path)[0], {"odd": {"turned": weight.detach().t(), "part": torch.tensor([1.0, 4.0])}})


def test_newer_checkpoint_takes_the_place(file: Path) -> None:
    write_checkpoint(file, {"network": {"weight": torch.zeros(1)}}, {"iteration": 8})
    assert read_checkpoint(file)[1] == {"iteration": 8}
    assert list(file.parent.iterdir()) == [file]


def fail(code: int) -> Any:
    def raise_it(*_: Any, **__: Any) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return raise_it


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_failed_write_leaves_the_older_file(file: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int) -> None:
    new = file.with_name("new.safetensors")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail(code))
        for path in (file, new):
            with pytest.raises(CheckpointError, match=f"{path.name}' could not be written: {os.strerror(code)}. Free"):
                write_checkpoint(path, {"network": {"weight": torch.zeros(1)}}, {})
    assert list(file.parent.iterdir()) == [file]
    assert_equal(read_checkpoint(file)[0], SECTIONS)


def test_interrupt_while_writing_leaves_the_older_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(file, {}, {})
    assert list(file.parent.iterdir()) == [file]
    assert_equal(read_checkpoint(file)[0], SECTIONS)


def test_file_where_a_folder_should_be(file: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be made"):
        write_checkpoint(file / "inside.safetensors", SECTIONS, META)


def test_new_files_have_usual_permissions_and_private_ones_stay_private(tmp_path: Path) -> None:
    for name in ("usual", "private"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "private").chmod(0o600)
    write_bytes(tmp_path / "ours", b"some bytes")
    write_bytes(tmp_path / "private", b"secret")
    assert (tmp_path / "ours").read_bytes() == b"some bytes"
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600


def test_a_foreign_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "explainer.safetensors"
    save_file({"weight": torch.zeros(2)}, str(path))
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="was not written by this package"):
        write_checkpoint(path, SECTIONS, META)
    assert path.read_bytes() == before


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_file(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        read_checkpoint(file)
    # Of the first few bytes nobody can tell what they are of.
    assert ("Delete it and train again" in str(caught.value)) == (share > 0.1)
    assert file.name in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"not a checkpoint at all", b"\x00" * 100, b"\xff" * 100, b"\x08" + b"\x00" * 7 + b"{}      "]
)
def test_file_that_is_no_safetensors(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(file)
    assert "elete" not in str(caught.value)


def test_a_changed_byte_of_the_header_changes_nothing_or_is_refused(file: Path) -> None:
    content = file.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    refused = 0
    for place in range(length):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x15]) + content[place + 1 :])
        try:
            sections, meta = read_checkpoint(file)
        except CheckpointError:
            refused += 1
            continue
        assert_equal(sections, SECTIONS)
        assert meta == META
    assert refused > 0.9 * length


@pytest.mark.parametrize("other", [{"a": 2.0, "b": 1.0}, {"a": 1.0, "c": 2.0}])
def test_the_checksum_knows_which_tensor_has_which_name(other: dict[str, float]) -> None:
    def of(values: dict[str, float]) -> str:
        return checksum({name: torch.tensor([value]) for name, value in values.items()})

    assert of({"a": 1.0, "b": 2.0}) == of({"b": 2.0, "a": 1.0})
    assert of({"a": 1.0, "b": 2.0}) != of(other)


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        (None, "no checkpoint of this version of GFlowExplainer .its format is None"),
        ({"format": "gflowexplainer-checkpoint-0"}, "its format is 'gflowexplainer-checkpoint-0', expected"),
        ({"format": FORMAT}, "damaged"),
    ],
)
def test_foreign_safetensors_file(tmp_path: Path, metadata: dict[str, str] | None, named: str) -> None:
    path = tmp_path / "foreign.safetensors"
    save_file({"weight": torch.zeros(2)}, str(path), metadata=metadata)
    with pytest.raises(CheckpointError, match=named):
        read_checkpoint(path)


@pytest.mark.parametrize("name", ["missing.safetensors", "."])
def test_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="There is no checkpoint"):
        read_checkpoint(tmp_path / name)
