"""Which evidence is believed: the rule by hand."""

from dataclasses import replace

import pytest

from gflowexplainer.rewards.belief import choose, says_little
from gflowexplainer.rewards.evidence_trial import EvidenceTrial
from gflowexplainer.rewards.mask_weight import mask_weight

from .conftest import by_gradients, showing, trial


@pytest.mark.parametrize(
    ("trials", "wanted"),
    [
        # Single nodes add up to all that can be reproduced, and shared evidence says much less.
        ([trial("shared", 0.5), trial("own", 0.75)], "own"),
        # They leave much unexplained: nodes act together.
        ([trial("shared", 0.2), trial("own", 0.6)], "shared"),
        # Shared evidence says nearly the same.
        ([trial("shared", 0.7), trial("both", 0.78)], "shared"),
        # It says nothing at all.
        ([trial("shared", 0.02), trial("own", 0.5)], "own"),
        # Neither does.
        ([trial("shared", -0.1), trial("own", -0.3)], "shared"),
        # What is far from the whole graph does not speak for own evidence.
        ([trial("shared", 0.3), trial("own", 0.6), trial("own", 0.9, keep=0.5, reproducible=0.9)], "shared"),
        ([trial("own", 0.1)], "own"),
        ([trial("shared", 0.1)], "shared"),
    ],
)
def test_the_rule_of_values(trials: list[EvidenceTrial], wanted: str) -> None:
    assert choose(trials, values=True).evidence == wanted


def test_classes_follow_shared_evidence_unless_it_says_nothing() -> None:
    assert choose([trial("shared", 0.55), trial("own", 0.79)]).evidence == "shared"
    assert choose([trial("shared", 0.02), trial("own", 0.5)]).evidence == "own"


@pytest.mark.parametrize(
    ("shared", "effect", "far", "near", "wanted"),
    [
        pytest.param(0.4, None, 0.75, 0.4, "own", id="adds up in small contexts"),
        pytest.param(0.55, None, 0.75, 0.4, "shared", id="shared evidence says more than two thirds of it"),
        pytest.param(0.2, None, 0.6, 0.75, "shared", id="too little in small contexts"),
        pytest.param(0.4, None, 0.65, 0.75, "own", id="nearly there, and near the whole graph"),
        pytest.param(0.4, None, 0.65, 0.65, "shared", id="nearly everywhere, fully nowhere"),
        pytest.param(0.45, None, 0.65, 0.75, "shared", id="more than two thirds of that"),
        pytest.param(0.4, 0.59, 0.75, 0.75, "own", id="shared evidence shows little"),
        pytest.param(0.4, 0.61, 0.75, 0.75, "shared", id="it shows what holds the class and is needed"),
    ],
)
def test_classes_follow_own_evidence_that_adds_up_where_shared_says_less(shared, effect, far, near, wanted) -> None:
    """What can be reproduced is .8: .75 is nearly all of it, .65 eight tenths, .6 less."""
    measured = [showing(trial("shared", shared, keep=0.5), effect), trial("own", far, keep=0.5)]
    chosen = choose([*measured, trial("shared", 0.1), trial("own", near)])
    assert chosen.evidence == wanted
    assert wanted == "shared" or chosen.keep_probability == 0.8


@pytest.mark.parametrize(
    ("shared", "far", "wanted"), [(0.4, 0.75, "shared"), (0.35, 0.75, "own"), (0.3, 0.65, "shared")]
)
def test_classes_of_graphs_follow_it_only_where_shared_evidence_says_less_than_half(shared, far, wanted) -> None:
    measured = [trial("shared", shared, keep=0.5), trial("own", far, keep=0.5)]
    assert choose([*measured, trial("shared", 0.1), trial("own", 0.75)], level="graph").evidence == wanted


@pytest.mark.parametrize(
    ("shared", "effect", "far", "level", "wanted"),
    [
        pytest.param(0.25, 0.3, 0.6, "node", "own", id="says far less and shows little"),
        pytest.param(0.28, 0.3, 0.6, "node", "shared", id="not so far less"),
        pytest.param(0.15, 0.3, 0.45, "node", "shared", id="own evidence says little itself"),
        pytest.param(0.25, 0.51, 0.6, "node", "shared", id="shows what holds the class or is needed"),
        pytest.param(0.25, None, 0.6, "node", "shared", id="was not asked"),
        pytest.param(0.25, 0.3, 0.6, "graph", "shared", id="of a graph"),
    ],
)
def test_around_a_node_own_evidence_need_not_add_up_where_it_says_far_more_and_shared_shows_little(
    shared, effect, far, level, wanted
) -> None:
    """What can be reproduced is .8; near the whole graph own evidence explains .5 of it."""
    measured = [showing(trial("shared", shared), effect), trial("own", far, keep=0.5)]
    chosen = choose([*measured, trial("own", 0.5)], level=level)
    assert chosen.evidence == wanted
    assert chosen.keep_probability == 0.8


def test_the_contexts_that_explain_more_are_taken() -> None:
    chosen = choose([trial("shared", 0.3, 0.5), trial("shared", 0.4, 0.8)])
    assert chosen.keep_probability == 0.8


@pytest.mark.parametrize(
    ("pooled", "apart", "wanted"), [(0.3, 0.5, True), (0.3, 0.35, False), (0.05, 0.25, False), (0.05, 0.6, True)]
)
def test_classes_have_weights_of_their_own_where_that_explains_clearly_more(pooled, apart, wanted) -> None:
    trials = [trial("shared", pooled), replace(trial("shared", apart), by_class=True)]
    assert choose(trials).by_class == wanted


def test_evidence_that_rates_best_what_does_far_less_is_not_taken() -> None:
    small, whole = showing(trial("shared", 0.7, 0.5), 0.5), showing(trial("shared", 0.3), 0.9)
    assert choose([small, whole]) == whole
    assert choose([small, showing(whole, 0.55)]) == small
    apart = replace(whole, by_class=True)
    assert choose([small, apart]) == apart
    unknown, nothing = showing(small, None), showing(small, 0.0)
    assert choose([unknown, whole]) == unknown
    assert choose([nothing, whole]) == whole
    # The class is more probable without what is rated best than it was: all do less than nothing.
    harmful = showing(trial("shared", 0.6), -0.2)
    assert choose([showing(small, -0.3), harmful]) == showing(small, -0.3)


@pytest.mark.parametrize(("effect", "taken"), [(0.85, True), (0.72, False), (None, False)])
def test_gradients_are_followed_only_where_they_show_far_more_than_contexts(effect, taken) -> None:
    shown = [showing(trial("shared", 0.6), 0.6), showing(trial("shared", 0.4, keep=0.5), 0.65)]
    gradients = by_gradients(0.8, effect)
    chosen = choose([*shown, trial("own", 0.7), gradients])
    assert chosen.by_gradients == taken
    # Where they are, single losses show little; where they are not, nothing has changed.
    usual = mask_weight([*shown, trial("own", 0.7)], shown[0], "graph")
    assert mask_weight([*shown, trial("own", 0.7), gradients], chosen, "graph") == (0.0 if taken else usual)


@pytest.mark.parametrize(
    ("explained", "effect", "incomplete", "taken"),
    [
        pytest.param(0.9, 0.66, 0.0, True, id="clearer and no less"),
        pytest.param(0.9, 0.64, 0.0, False, id="a little less"),
        pytest.param(0.75, 0.66, 0.0, False, id="hardly clearer"),
        pytest.param(0.9, 0.66, 0.8, False, id="one place of several"),
    ],
)
def test_gradients_that_are_far_clearer_need_not_show_more(explained, effect, incomplete, taken) -> None:
    """What contexts show explains .5 of .7 that can be reproduced."""
    shown = [showing(trial("shared", 0.5, reproducible=0.7), 0.6)]
    shown += [showing(trial("shared", 0.3, keep=0.5, reproducible=0.8), 0.65)]
    gradients = by_gradients(explained, effect, incomplete)
    assert choose([*shown, gradients]).by_gradients == taken


@pytest.mark.parametrize(("effect", "taken"), [(0.51, True), (0.49, False)])
def test_gradients_that_name_what_does_little_are_not_followed_though_contexts_name_what_does_less(effect, taken):
    shown = [showing(trial("shared", 0.6), 0.03), showing(trial("shared", 0.4, keep=0.5), 0.11)]
    gradients = by_gradients(0.8, effect)
    assert choose([*shown, gradients]).by_gradients == taken


@pytest.mark.parametrize(
    ("explained", "effect", "kind"),
    [
        pytest.param(0.08, 0.73, "shared", id="says little, shows what holds and is needed"),
        pytest.param(0.08, 0.55, "own", id="shows what holds or is needed"),
        pytest.param(-0.02, 0.73, "own", id="says less than nothing"),
        pytest.param(0.08, None, "own", id="was not asked"),
    ],
)
def test_shared_evidence_that_says_little_is_kept_for_what_it_shows(explained, effect, kind) -> None:
    shared = showing(trial("shared", explained, reproducible=0.5), effect)
    assert choose([shared, trial("own", 0.3, reproducible=0.5)]).evidence == kind


@pytest.mark.parametrize(("incomplete", "taken"), [(0.0, True), (0.15, True), (0.25, False), (0.4, False)])
def test_what_contexts_show_to_be_needed_is_not_given_up_for_what_holds_by_itself(incomplete, taken) -> None:
    shown = [showing(trial("shared", 0.3), 0.35, incomplete)]
    gradients = by_gradients(0.5, 0.55)
    assert choose([*shown, gradients]).by_gradients == taken


def test_own_evidence_that_is_believed_is_not_given_up_for_gradients() -> None:
    silent = showing(trial("shared", 0.02), 0.2)
    gradients = by_gradients(0.9, 0.9)
    assert choose([silent, trial("own", 0.5), gradients]).evidence == "own"


def test_shared_evidence_says_little_below_two_thirds_of_what_can_be_reproduced() -> None:
    assert says_little(trial("shared", 0.5))
    assert not says_little(trial("shared", 0.55))
    assert not says_little(trial("own", 0.1))
    assert not says_little(replace(trial("shared", 0.1), by_gradients=True))


@pytest.mark.parametrize(
    ("explained", "effect", "taken"),
    [
        pytest.param(0.5, 0.6, True, id="they explain more"),
        pytest.param(0.44, 0.6, False, id="hardly more"),
        pytest.param(0.5, 0.4, False, id="but show what does little"),
        pytest.param(0.2, None, False, id="less"),
    ],
)
def test_features_count_where_they_explain_more_than_predictions(explained, effect, taken) -> None:
    plain = [showing(trial("shared", 0.4), 0.6), showing(trial("shared", 0.3, keep=0.5), 0.6)]
    told = showing(trial("features", explained, keep=0.5), effect)
    chosen = choose([*plain, told, trial("own", 0.7)])
    assert chosen.evidence == ("features" if taken else "shared")
    assert mask_weight([*plain, told, trial("own", 0.75)], chosen, "node") > 0


def test_what_does_far_less_than_features_is_not_taken_even_if_it_explains_more() -> None:
    plain, told = showing(trial("shared", 0.7), 0.2), showing(trial("features", 0.5), 0.9)
    assert choose([plain, told, trial("own", 0.7)]).evidence == "features"
