"""The quick parts of the fault suite: nothing is unclear, nothing silently wrong; and it notices what is."""

import pytest

from faults.counting import Count, forked
from faults.files import corrupted
from faults.inputs import bad_inputs
from faults.resources import unwritable_folders
from gflowexplainer.errors import ConfigError


def assert_clean(count, tried):
    assert count.notes == []
    assert count.numbers["tried"] >= tried
    assert count.numbers["survived"] + count.numbers["typed"] == count.numbers["tried"]


@pytest.mark.filterwarnings("ignore")
def test_every_bad_input_is_refused_in_words_or_right():
    assert_clean(bad_inputs(), 150)


def test_damaged_files_are_refused_or_as_they_were():
    assert_clean(corrupted(120), 120)


def test_folders_that_cannot_be_written():
    assert_clean(unwritable_folders(), 30)


def test_the_suite_tells_ends_apart():
    def fail(error):
        raise error

    count = Count("all ends")
    count.judge("typed", lambda: fail(ConfigError("'a' must be a whole number (got 'b').")))
    count.judge("mute", lambda: fail(ConfigError("")))
    count.judge("unclear", lambda: fail(KeyError("a")))
    count.judge("wrong", lambda: 3)
    count.judge("wrong too", lambda: 3, lambda found: found == 4)
    count.judge("right", lambda: 3, lambda found: found == 3)
    assert count.numbers == {"tried": 6, "survived": 1, "typed": 1, "unclear": 2, "wrong": 2}
    assert len(count.notes) == 4


def test_a_forked_process_says_how_it_ended():
    def fail(error):
        raise error

    assert forked(lambda: None) == 0
    assert forked(lambda: fail(ConfigError("x"))) == 3
    assert forked(lambda: fail(KeyError("x"))) == 4
    assert forked(lambda: __import__("time").sleep(60), kill_after=0.05) == -9
