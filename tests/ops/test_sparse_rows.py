"""Fields that are written out when they are looked at."""

import copy
import math
import pickle

import pytest
import torch

from gflowexplainer.ops.sparse_rows import Fields, RowSections, SparseRows, pack_fields, unpack_fields


@pytest.fixture
def rows():
    return SparseRows(torch.tensor([[1.0], [2.0]]), torch.tensor([3, 1]), 5)


@pytest.fixture
def fields(rows):
    return Fields(mask=rows, name="n")


def test_rows(rows):
    assert rows.dense().tolist() == [[0], [2], [0], [1], [0]]
    assert [rows.row(i).tolist() for i in range(5)] == rows.dense().tolist()
    unknown = SparseRows(torch.tensor([7]), torch.tensor([0]), 2, fill=-1)
    assert unknown.dense().tolist() == [7, -1]
    assert int(unknown.row(1)) == -1


def test_looking_writes_out_once(fields, rows):
    assert fields.raw()["mask"] is rows
    mask = fields["mask"]
    assert torch.equal(mask, rows.dense())
    mask[0] = 9  # what is looked at can be changed, as in any dictionary
    assert fields["mask"][0] == 9
    assert fields.get("mask") is fields["mask"] is dict(fields.items())["mask"]
    assert fields.get("other") is None
    assert fields.get("other", 3) == 3


@pytest.mark.parametrize("ways", [lambda f: f.items(), lambda f: f.values(), lambda f: [f.get("mask")]])
def test_every_way_of_looking(fields, ways):
    assert not any(isinstance(value, SparseRows) for value in ways(fields))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_stay_small_and_apart(fields, copied):
    other = copied(fields)
    assert isinstance(other, Fields)
    assert isinstance(other.raw()["mask"], SparseRows)
    other["mask"][0] = 9
    assert fields["mask"][0] == 0


def test_packing(fields):
    fields["deep"] = SparseRows(torch.tensor([1.0]), torch.tensor([2]), 3, fill=math.nan)
    tensors, plain = pack_fields(fields.raw())
    assert set(plain) == {"mask", "deep"}
    again = unpack_fields(tensors | {"x": torch.ones(2)}, plain)
    assert set(again) == {"mask", "deep", "x"}
    for name in plain:
        torch.testing.assert_close(again[name].dense(), fields[name], equal_nan=True)


def test_sections_of_several_tensors_hold_their_own_rows():
    # Two owners: sections of 3, 0 and 2 rows, and of 1 and 4.
    owner = torch.tensor([0, 1, 0, 1, 0, 1])
    place = torch.tensor([4, 0, 0, 4, 2, 1])
    value = torch.arange(6.0)
    sections = RowSections({"a": value, "b": value[:, None]}, owner, place, [[0, 3, 3], [0, 1]])
    assert sections.rows(0, 0, 3)["a"].dense().tolist() == [2, 0, 4]
    assert sections.rows(0, 1, 0)["a"].dense().tolist() == []
    assert sections.rows(0, 2, 2)["b"].dense().tolist() == [[0], [0]]
    assert sections.rows(0, 2, 2)["a"].place.tolist() == [1]
    assert sections.rows(1, 0, 1)["a"].dense().tolist() == [1]
    assert sections.rows(1, 1, 4)["a"].dense().tolist() == [5, 0, 0, 3]
