"""Tables of what was measured about counterfactuals and catalogues."""

from types import SimpleNamespace

import torch
from torch import nn
from torch_geometric.data import Data

from gflowbench.suites.catalogue_study import _half_of_each, _judged
from gflowbench.suites.studies import _class_without, _needed_nodes, write_tables
from gflowbench.suites.task import Combination, TaskTruth
from gflowexplainer.catalogue.canonical_form import canonical_form
from gflowexplainer.storage.files import write_json

TRIANGLE = canonical_form(["a"] * 3, {(0, 1): "", (1, 2): "", (0, 2): ""})
PATH = canonical_form(["a"] * 3, {(0, 1): "", (1, 2): ""})


class Found(SimpleNamespace):
    def __len__(self):
        return len(self.form)


def test_a_class_is_judged_by_its_truth():
    truths = [[TRIANGLE], [TRIANGLE], [TRIANGLE, PATH], [], [PATH]]
    labels = [1, 1, 1, 0, 0]
    found = [Found(form=PATH, support=0.4), Found(form=TRIANGLE, support=0.9)]
    said = _judged(1, found, labels, truths)
    assert (said["right"], said["place"], said["truth"]) == (True, 1, 1 / 3)
    said = _judged(1, found[1:], labels, truths)
    assert (said["right"], said["support"], said["truth"]) == (True, 0.9, 1.0)
    assert not _judged(1, [], labels, truths)["right"]
    assert not _judged(0, found, labels, [[], [], [], [], []])["judged"]


def test_half_of_the_predictions_have_a_truth_and_all_are_spread():
    some, none = TaskTruth(9, Combination.ANY, ((0, 1),)), TaskTruth(9, Combination.NONE)
    truths = {i: some if i % 5 == 0 else none for i in range(100)}
    chosen = _half_of_each(list(range(100)), truths, 8)
    assert [i for i in chosen if i % 5 == 0] == [0, 30, 60, 95]
    assert [i for i in chosen if i % 5] == [1, 33, 66, 99]
    assert _half_of_each(list(range(100)), dict.fromkeys(range(100), some), 4) == [0, 33, 66, 99]


class MoreThanTwoOnes(nn.Module):
    def forward(self, x, edge_index, batch):
        total = x.sum().reshape(1, 1)
        return torch.cat([2.5 - total, total - 2.5], dim=1)


def test_needed_nodes_are_those_without_which_the_class_changes():
    graph = Data(x=torch.tensor([[1.0], [0.0], [1.0], [1.0]]), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    assert _class_without(MoreThanTwoOnes(), graph, set()) == 1
    assert _needed_nodes(MoreThanTwoOnes(), graph) == {0, 2, 3}


def test_tables_say_how_many_were_right(tmp_path):
    judged = {"class": 1, "judged": True, "place": 1, "nodes": 3, "predictions": 9}
    classes = [
        judged | {"right": True, "support": 0.98, "truth": 1.0},
        judged | {"right": True, "support": 0.4, "truth": 1.0},
        judged | {"right": False, "place": None, "support": 0.4, "truth": None},
        judged | {"judged": False, "right": False, "support": 0.1, "truth": None},
    ]
    made = {"name": "or", "explanations": 40, "classes": classes, "rule accuracy": 0.9, "tree accuracy": None}
    write_json(tmp_path / "cells" / "catalogue-or.json", made)
    text = write_tables(tmp_path).read_text()
    assert "first in 2 of 3 classes that have one, its support within .05 of the truth in 1." in text
    assert text.count("| 1 | yes |") == 2
