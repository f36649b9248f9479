import json

from gflowexplainer.training.checkpoint import append_lines, cut_lines


def test_lines_are_added_and_what_the_checkpoint_does_not_know_is_cut(tmp_path):
    path = tmp_path / "new" / "curves.jsonl"
    append_lines(path, [{"iteration": i, "loss": i / 2} for i in range(3)])
    append_lines(path, [{"iteration": 3, "loss": 9.0}])
    with path.open("a") as file:
        file.write('{"iteration": 4, "lo')  # broken off
    cut_lines(path, 2)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"iteration": 0, "loss": 0.0},
        {"iteration": 1, "loss": 0.5},
    ]
    append_lines(path, [{"iteration": 2, "loss": 7.0}])
    assert len(path.read_text().splitlines()) == 3


def test_a_file_that_agrees_or_is_not_there_is_left_alone(tmp_path):
    path = tmp_path / "curves.jsonl"
    cut_lines(path, 5)
    assert not path.exists()
    append_lines(path, [{"iteration": 0}])
    written = path.stat().st_ino
    cut_lines(path, 1)
    assert path.stat().st_ino == written
