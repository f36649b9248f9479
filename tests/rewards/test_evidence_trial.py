"""A trial of evidence, written and read."""

import json
import math

import pytest

from gflowexplainer.choices import EvidenceType
from gflowexplainer.rewards.effect import Effect
from gflowexplainer.rewards.evidence_trial import EvidenceTrial

EFFECT = Effect(0.5, 0.25, 0.4, 0.6)


def test_a_trial_is_read_as_it_was_written() -> None:
    for kind in EvidenceType:
        if kind == EvidenceType.auto:
            continue
        for effect in (None, EFFECT):
            one = EvidenceTrial(kind, 0.8, "isolate", True, 0.5, 0.75, effect, by_gradients=effect is not None)
            assert EvidenceTrial.from_row(one.row()) == one


def test_a_row_of_another_length_is_refused() -> None:
    """One of a former version would be misread."""
    row = EvidenceTrial(EvidenceType.shared, 0.8, "induced", False, 0.5, 0.75, EFFECT).row()
    for other in (row[:-2], [*row, 0.0]):
        with pytest.raises(TypeError):
            EvidenceTrial.from_row(other)


def test_a_trial_is_plain_json() -> None:
    one = EvidenceTrial(EvidenceType.shared, 0.8, "induced", False, 0.5, 0.75, EFFECT)
    found = json.loads(json.dumps(one.to_dict()))
    assert found["evidence"] == "shared"
    assert found["effect"] == {"size": 0.5, "incomplete": 0.25, "lacking": 0.4, "needed": 0.6}
    assert EvidenceTrial(EvidenceType.own, 0.8, "induced", False, 0.5, 0.75).to_dict()["effect"] is None


def test_clarity_is_the_share_of_what_can_be_reproduced() -> None:
    one = EvidenceTrial(EvidenceType.shared, 0.8, "induced", False, 0.3, 0.75)
    assert math.isclose(one.clarity, 0.4)
    assert EvidenceTrial(EvidenceType.shared, 0.8, "induced", False, 0.3, 0.0).clarity == 0
