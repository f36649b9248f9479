import json
import math

import pytest

from gflowbench.protocol import Cell, Record
from gflowbench.protocol.record import FAILED
from gflowexplainer.report.provenance import code_digest
from gflowexplainer.storage.files import read_json, write_json


def cell(seed, auc, **further):
    return Cell(
        "random", "tree-cycles", "published", seed, {"code": "abc", "protocol": {}}, metrics={"auc_own": auc}, **further
    )


def test_a_record_averages_over_the_seeds_that_worked():
    failed = Cell("random", "tree-cycles", "published", 2, {}, status=FAILED, error="no luck")
    record = Record([cell(0, 0.5), cell(1, 0.7), failed], stability={("published", "tree-cycles", "random"): 0.9})
    (summary,) = record.summaries()
    assert summary.mean["auc_own"] == pytest.approx(0.6)
    assert summary.deviation["auc_own"] == pytest.approx(math.sqrt(0.02))
    assert summary.mean["stability"] == 0.9
    assert (summary.seeds, summary.failed) == ([0, 1], [2])


def test_the_record_says_how_it_was_made(tmp_path):
    record = Record([cell(0, math.nan, facts={"provenance": "a file"})], command="gflowexplainer evaluate")
    record.write(tmp_path / "deep")
    found = json.loads((tmp_path / "deep" / "summary.json").read_text())
    assert found["command"] == "gflowexplainer evaluate"
    assert {"gflowexplainer", "python", "torch", "torch_geometric"} <= set(found["versions"])
    assert found["device"]["threads"] >= 1
    assert found["subjects"] == {"tree-cycles, published GNN": {"provenance": "a file"}}
    assert found["code"] == code_digest()
    assert found["code_of_cells"] == {"random": "abc"}
    assert "cells" not in found
    values = json.loads((tmp_path / "deep" / "values.json").read_text())
    assert values["cells"][0]["metrics"] == {"auc_own": None}
    assert values["cells"][0]["seed"] == 0
    assert record.to_dict().keys() == {*found, *values}


def test_a_cell_survives_its_file(tmp_path):
    one = cell(3, math.nan, selected={"mask": "x", "node_counts": "y"}, deterministic=True)
    again = Cell.from_dict(read_json(write_json(tmp_path / "cell.json", one.to_dict(whole=True))))
    assert math.isnan(again.metrics["auc_own"])
    assert (again.seed, again.selected, again.deterministic) == (3, one.selected, True)
