"""The catalogue on explanations whose motifs were planted by hand."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import ModelConfig
from torch_geometric.utils import to_undirected

from gflowexplainer import GFlowExplainer, SubgraphExplanation, motifs
from gflowexplainer.catalogue.canonical_form import canonical_form
from gflowexplainer.errors import ConfigError
from gflowexplainer.explanation.distribution import SubgraphDistribution
from gflowexplainer.explanation.findings import Part, Parts
from gflowexplainer.explanation.ranked import RankedSubgraphs
from gflowexplainer.testing import TypedNodeModel, typed_graph

CONFIG = ModelConfig(mode="multiclass_classification", task_level="graph", return_type="probs")
TRIANGLE, SQUARE = [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3), (3, 0)]
HOUSE = [*SQUARE, (0, 4), (1, 4)]


def planted(label, shape, tail, found, *, colours=None, model="m", parts=None):
    """A graph: a shape with a tail of some nodes; the explanation shows the nodes ``found``, and ``parts``."""
    size = 1 + max(max(edge) for edge in shape)
    edges = shape + [(size - 1 if i == 0 else size + i - 1, size + i) for i in range(tail)]
    total = size + tail
    x = torch.ones(total, 1) if colours is None else torch.eye(3)[torch.tensor(colours)]
    only, without = (1 - label, label), (label, 1 - label)
    known = {"subgraphs": RankedSubgraphs.of((nodes, p, 1.0, only, without) for nodes, p in found)}
    if parts is not None:
        known["parts"] = Parts(tuple(Part(nodes, only, without) for nodes in parts), (), (), 1.0, 0.0)
    distribution = SubgraphDistribution(num_samples=64, model=model, known=known)
    whole = torch.tensor([[0.9, 0.1] if label == 0 else [0.1, 0.9]])
    e = SubgraphExplanation.of(
        distribution,
        x=x,
        edge_index=to_undirected(torch.tensor(edges).t(), num_nodes=total),
        prediction=whole,
        target=torch.tensor([label]),
    )
    e._model_config = CONFIG
    return e


def toy():
    ones = [planted(1, TRIANGLE, tail, [((0, 1, 2), 0.7), ((0, 1), 0.3)]) for tail in (1, 2, 3, 4)]
    zeros = [planted(0, SQUARE, tail, [((0, 1, 2, 3), 0.6), ((3, 4), 0.4)]) for tail in (1, 2, 3, 4)]
    return ones + zeros


def test_the_planted_motif_is_first_with_its_support_and_rule():
    found = motifs(toy())
    best = {label: entries[0] for label, entries in found.by_class.items()}
    assert best[1].form == canonical_form([""] * 3, dict.fromkeys(TRIANGLE, ""))
    assert best[0].form == canonical_form([""] * 4, dict.fromkeys(SQUARE, ""))
    assert (best[1].support, best[1].present, best[1].elsewhere) == (1.0, 1.0, 0.0)
    assert (best[1].probability_with, best[1].probability_without) == (1.0, 0.0)
    assert best[1].examples[0] == (0, (0, 1, 2))
    rules = {rule.label: rule for rule in found.rules}
    assert (rules[1].covers, rules[1].right, rules[1].accuracy) == (1.0, 1.0, 1.0)
    held_out = found.check_rules([planted(1, SQUARE, 2, [((0, 1, 2, 3), 1.0)]), *toy()])
    assert {rule.label: rule.accuracy for rule in held_out}[1] == pytest.approx(8 / 9)


def test_a_fragment_that_only_the_motif_has_counts_for_it():
    ones = [planted(1, SQUARE, tail, [((0, 1, 2) if tail % 2 else (0, 1, 2, 3), 1.0)]) for tail in (1, 2, 3, 4)]
    zeros = [planted(0, TRIANGLE, 0, [((0, 1), 1.0)]) for _ in range(3)]
    best = motifs(ones + zeros).by_class[1][0]
    # A path of three nodes lies in every graph with a square, and in no triangle.
    assert len(best) == 4
    assert best.support == 1


def test_a_motif_that_is_sampled_after_its_fragment_is_first():
    # The model needs four of five nodes, and these lie in no graph without the fifth.
    found = [((0, 1, 2, 3), 0.75), ((0, 1, 2, 3, 4), 0.25)]
    ones = [planted(1, HOUSE, tail, found, parts=[(0, 1, 2, 3)]) for tail in (1, 2, 3, 4)]
    zeros = [planted(0, TRIANGLE, tail, [((0, 1, 2), 1.0)]) for tail in (1, 2, 3)]
    best = motifs(ones + zeros).by_class[1][0]
    assert best.form == canonical_form([""] * 5, dict.fromkeys(HOUSE, ""))
    assert (best.support, best.share) == (1.0, pytest.approx(1.0))
    # Where the fragment lies in other graphs too, it is the fragment that the model looks at.
    ones.append(planted(1, SQUARE, 2, [((0, 1, 2, 3), 1.0)], parts=[(0, 1, 2, 3)]))
    assert len(motifs(ones + zeros).by_class[1][0]) == 4


def test_what_hangs_on_every_motif_does_not_belong_to_it():
    found = [((0, 1, 2), 0.6), ((0, 1, 2, 3), 0.4)]
    ones = [planted(1, TRIANGLE, tail, found) for tail in (1, 2, 3, 4)]
    zeros = [planted(0, SQUARE, tail, [((0, 1, 2, 3), 1.0)]) for tail in (1, 2, 3)]
    assert [len(entry) for entry in motifs(ones + zeros).by_class[1]] == [3]


def test_the_part_that_preserves_the_prediction_counts_beside_the_first_subgraph():
    found = [((0, 1, 2, 3), 0.4), ((0, 1, 2), 0.6)]
    ones = [planted(1, TRIANGLE, tail, found, parts=[(0, 1, 2)]) for tail in (1, 2, 3)]
    zeros = [planted(0, SQUARE, tail, [((0, 1, 2, 3), 1.0)], parts=[(0, 1)]) for tail in (1, 2, 3)]
    made = motifs(ones + zeros)
    assert [(len(entry), entry.share) for entry in made.by_class[1]] == [
        (3, pytest.approx((1 + 0.6) / 3)),
        (4, pytest.approx((1 + 0.4) / 3)),
    ]
    # A part may be smaller than the first subgraph, which shows the motif all the same.
    assert (len(made.by_class[0][0]), made.by_class[0][0].support) == (4, 1.0)


def test_where_no_motif_tells_classes_apart_what_is_shown_most_goes_first():
    shapes = [(TRIANGLE, (0, 1, 2)), (SQUARE, (0, 1, 2, 3)), (SQUARE, (0, 1, 2, 3))]
    found = motifs(
        planted(label, shape, tail, [(nodes, 0.9), ((0, 1), 0.1)])
        for label in (0, 1)
        for tail in (1, 2)
        for shape, nodes in shapes
    )
    # An edge lies in all that is shown, but next to no weight is on it.
    for entries in found.by_class.values():
        assert [(len(entry), entry.score) for entry in entries] == [(4, 0.0), (3, 0.0), (2, 0.0)]


def test_a_difference_that_may_be_chance_does_not_tell_classes_apart():
    # One graph of the others lacks the square: 1 against 3 of 4 says nothing, and what is shown most goes first.
    ones = [planted(1, HOUSE, tail, [((0, 1, 4), 0.9), ((0, 1, 2, 3), 0.1)]) for tail in (1, 2, 3, 4)]
    zeros = [planted(0, shape, 1, [((0, 1), 1.0)]) for shape in (HOUSE, HOUSE, HOUSE, TRIANGLE)]
    triangle, square = sorted(motifs(ones + zeros, min_support=0).by_class[1], key=len)
    assert (square.present, square.elsewhere, square.contrast) == (1.0, 0.75, 0.0)
    assert triangle.number < square.number
    # 1 against 3 of 40 is none: shares of 5 in 6 and 4 in 42 with the errors 0.152 and 0.045 by hand.
    zeros = [planted(0, shape, 1, [((0, 1), 1.0)]) for shape in [HOUSE] * 3 + [TRIANGLE] * 37]
    square = max(motifs(ones + zeros, min_support=0).by_class[1], key=len)
    assert square.contrast == square.score / square.share**0.5 == pytest.approx(1 - 3 / 40)


def test_a_class_of_absence_gets_a_rule_of_absence():
    with_it = [planted(0, TRIANGLE, tail, [((0, 1, 2), 1.0)]) for tail in (1, 2, 3)]
    without = [planted(1, [(0, 1)], tail, [((0, 1), 1.0)]) for tail in (3, 4, 5)]
    found = motifs(with_it + without)
    triangle = found.by_class[0][0]
    rule = next(rule for rule in found.rules if rule.label == 1)
    assert rule.literals == ((triangle.number, False),)
    assert rule.right == 1
    assert "no motif" in str(rule)


def test_colours_tell_motifs_apart_and_labels_can_be_given():
    one = [planted(1, TRIANGLE, 1, [((0, 1, 2), 1.0)], colours=[0, 1, 2, 0]) for _ in range(3)]
    other = [planted(0, TRIANGLE, 1, [((0, 1, 2), 1.0)], colours=[0, 0, 2, 1]) for _ in range(3)]
    found = motifs(one + other)
    assert sorted(found.by_class[1][0].form.labels) == ["0", "1", "2"]
    assert found.by_class[1][0].elsewhere == 0
    plain = motifs(one + other, labels=lambda e: ["C"] * e.num_nodes)
    assert plain.by_class[1][0].elsewhere == 1


def test_a_single_explanation_needs_no_list():
    one = toy()[0]
    assert str(motifs(one)) == str(motifs([one]))
    for wrong in ([1], 3):
        with pytest.raises(ConfigError, match=r"that GFlowExplainer makes \(got int\)"):
            motifs(wrong)


def test_motifs_across_types_have_types_for_labels_and_relations_for_edges():
    graph = typed_graph()
    found = GFlowExplainer(max_nodes=4).explain(TypedNodeModel(), graph, node_type="paper", progress=False)
    catalogue = motifs(found)
    assert all(set(motif.form.labels) <= set(graph.node_types) for motif in catalogue.motifs)
    edges = {kind for motif in catalogue.motifs for _, _, kind in motif.form.edges}
    assert edges
    assert edges <= {key[1] for key in graph.edge_types}
    for motif in catalogue.motifs:
        for place, nodes in motif.examples:
            assert found[place].explained_node in nodes
            assert sorted(key for key, _ in nodes) == sorted(motif.form.labels)
    assert motifs(found[0]).num_explanations
    assert len(catalogue.presence(found)) == len(found)


def test_motifs_without_labels_list_none():
    said = str(motifs(toy()[:1]))
    assert "class 1 (1 explanation)" in said
    assert ": 3 nodes; support" in said


def test_canonical_smiles():
    chem = pytest.importorskip("rdkit.Chem")
    acids = [
        planted(1, [(0, 1), (0, 2)], 2, [((0, 1, 2), 1.0)], colours=[*order, 0, 0]) for order in ([1, 2, 2], [1, 2, 2])
    ]
    found = motifs(acids, labels=lambda e: [("C", "N", "O")[int(k)] for k in e.x.argmax(dim=1)])
    smiles = found.by_class[1][0].smiles()
    assert chem.CanonSmiles(smiles) == chem.CanonSmiles(smiles)
    assert sorted(a.GetSymbol() for a in chem.MolFromSmiles(smiles, sanitize=False).GetAtoms()) == ["N", "O", "O"]
    with pytest.raises(ConfigError, match="no element"):
        motifs(acids, labels=lambda e: ["colour"] * e.num_nodes).by_class[1][0].smiles()


def test_wrong_uses():
    with pytest.raises(ConfigError, match="no explanations"):
        motifs([])
    mixed = [planted(1, TRIANGLE, 1, [((0, 1, 2), 1.0)], model=name) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="2 different models"):
        motifs(mixed)
    with pytest.raises(ConfigError, match="'min_support'"):
        motifs(toy(), min_support=2)
    with pytest.raises(ConfigError, match="entries for"):
        motifs(toy(), labels=[["C"]])


def test_a_page_with_pictures_and_nothing_unescaped():
    from gflowexplainer.drawing.motifs import motif_page

    found = motifs(toy(), labels=lambda e: ["<b>"] * e.num_nodes)
    page = motif_page(found, "<title>", ["no", "<yes>"])
    assert page.count("<svg") == len(found.motifs)
    assert "<b>" not in page
    assert "<yes>" not in page


def test_data_is_not_changed():
    e = toy()[0]
    before = Data(x=e.x.clone(), edge_index=e.edge_index.clone())
    motifs([e])
    assert torch.equal(e.x, before.x)
    assert torch.equal(e.edge_index, before.edge_index)
