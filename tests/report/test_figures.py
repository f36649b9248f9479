from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from gflowexplainer.errors import ConfigError
from gflowexplainer.report import Case, Report, write_figures
from gflowexplainer.testing import graph_of

from ..conftest import explain_by_hand, joins

pytest.importorskip("matplotlib")


def pixels(path):
    from matplotlib.image import imread

    return imread(path)[..., :3]


def test_files_have_names_of_the_cases(house_case, tmp_path):
    cases = [house_case("node 4"), house_case("../../etc/passwd"), house_case("Ünïcode?")]
    curves = [{"iteration": i, "loss": 1.0 + i} for i in range(5)]
    written = write_figures(Report("r", cases, curves), tmp_path / "figures", ["svg"])
    assert [p.name for p in written] == ["1-node-4.svg", "2-etc-passwd.svg", "3-n-code.svg", "training.svg"]
    assert {p.parent for p in written} == {tmp_path / "figures"}
    assert len(list((tmp_path / "figures").iterdir())) == 4
    for path in written:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_a_png_is_small_and_keeps_its_colours(house_case, tmp_path):
    others = {f"explainer {number}": torch.rand(12) for number in range(4)}
    (path,) = write_figures(Report("r", [house_case(others=others)]), tmp_path, ["png"])
    found = pixels(path)
    assert 1000 < found.shape[1] <= 1280
    assert len(np.unique(found.reshape(-1, found.shape[2]), axis=0)) <= 128
    assert (found == 1).all(axis=2).mean() > 0.5  # the paper is white, not nearly white
    assert path.stat().st_size < 150_000


def test_same_report_same_bytes(house_case, tmp_path):
    report = Report("r", [house_case()])
    for form in ("png", "svg", "pdf"):
        (one,) = write_figures(report, tmp_path / "a", [form])
        (two,) = write_figures(report, tmp_path / "b", [form])
        assert one.read_bytes() == two.read_bytes()


def test_the_ground_truth_is_marked(house_case, tmp_path):
    blue = np.array([0x1D, 0x4E, 0xD8]) / 255
    case = house_case()
    counts = []
    for truth in (None, joins(case.explanation, (0, 4))):
        (path,) = write_figures(Report("r", [house_case(truth=truth)]), tmp_path, ["png"])
        counts.append(int((np.abs(pixels(path) - blue).max(axis=2) < 0.02).sum()))
    assert counts[0] == 0
    assert counts[1] > 100


def test_molecules_sentences_others_and_odd_text(house_case, tmp_path):
    odd = "$\\frac{1}{$ \x07"
    ring = graph_of([(i, (i + 1) % 6) for i in range(6)], 6)
    molecule = Case("benzene", explain_by_hand(ring, [((0, 1), 1.0)], None), smiles="c1ccccc1")
    cases = [
        house_case(odd, labels=[odd] * 5, others={odd: torch.rand(12)}),
        house_case("sentence", words=["word"] * 4 + ["x" * 90]),
        molecule,
        Case("lone", explain_by_hand(graph_of([], 1), [((0,), 1.0)], None)),
    ]
    written = write_figures(Report("r", cases), tmp_path, ("png",))
    assert len(written) == 4
    for path in written:
        assert pixels(path).std() > 0.01


def test_wrong_formats_are_named(house_case, tmp_path):
    report = Report("r", [house_case()])
    with pytest.raises(ConfigError, match="Did you mean 'png'"):
        write_figures(report, tmp_path, ["pgn"])
    for formats in ("png", []):
        with pytest.raises(ConfigError, match="'formats'"):
            write_figures(report, tmp_path, formats)
    assert not list(tmp_path.iterdir())
