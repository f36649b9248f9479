"""Explanations to look at: subgraphs beside RG-Explainer's, molecules beside PGExplainer's, and two sentences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gflowbench.paper.case_pictures import draw_molecules, draw_sentences, draw_subgraphs
from gflowbench.paper.cases import OURS, RG, motif_cases
from gflowbench.paper.experiment import UNKNOWN, Drawing, Experiment, Outcome, Results, Scope, Verdict
from gflowbench.paper.molecule_cases import LARGER, PG, molecule_cases
from gflowbench.paper.sentence_cases import PRINTED_ACCURACY, sentence_cases
from gflowbench.paper.steps import Measurement
from gflowbench.paper.systems import here, missing, short
from gflowbench.protocol.presentation import TITLES
from gflowexplainer.report.tables import NOT_THERE, Table

FULL = {"ba-shapes": 1, "ba-community": 1, "tree-cycles": 1, "tree-grid": 3, "ba-2motifs": 2, "mutagenicity": 10}
FAST = {"ba-shapes": 12, "ba-community": 20, "tree-cycles": 6, "tree-grid": 30, "ba-2motifs": 20, "mutagenicity": 40}
"""Each how many-th instance is fitted on."""
MOLECULES, SENTENCES = "molecules", "sentences"


def plan(scope: Scope) -> list[Measurement]:
    """One step for each dataset, one for molecules, one for sentences where their text is there."""
    rg = short("rg-explainer", "").settings if scope.fast else {}
    ours = short("gflow", "").settings if scope.fast else {}
    every = scope.pick(FULL, FAST)
    steps = []
    sizes: dict[str, Any]
    for dataset in here(scope):
        problem = scope.problem(dataset, every=every[dataset])
        known = {"rg": rg, "ours": ours, "gnn": problem.gnn, "problem": problem.settings}
        steps.append(Measurement(dataset, known, partial(motif_cases, problem, rg, ours)))
    if "mutagenicity" in here(scope):
        problem = scope.problem("mutagenicity", every=every["mutagenicity"])
        known = {"ours": ours, "gnn": problem.gnn, "problem": problem.settings}
        steps.append(Measurement(MOLECULES, known, partial(molecule_cases, problem, ours)))
        sizes = scope.pick({"limit": None, "epochs": 5, "others": 100}, {"limit": 4000, "epochs": 4, "others": 20})
        text = partial(sentence_cases, ours=ours, **sizes)
        steps.append(Measurement(SENTENCES, sizes | {"ours": ours}, text))
    return steps


def present(results: Results) -> Outcome:
    """Draws what was found, and counts it over all instances."""
    scope = results.scope
    found = {dataset: results[dataset] for dataset in here(scope)}
    molecules, sentences = (results.values.get(name) for name in (MOLECULES, SENTENCES))
    drawings = [
        Drawing(
            "subgraphs",
            "One instance of each dataset, explained by GFlowExplainer and by RG-Explainer: the explained node (pink "
            "diamond), chosen nodes in the motif (green circles) and not in it (orange squares), motif nodes that were "
            "missed (hollow circles), other nodes of a graph (dots). Thick lines join chosen nodes.",
            partial(draw_subgraphs, {TITLES[d]: value["shown"] for d, value in found.items()}),
        )
    ]
    tables = [_table(found)]
    verdicts = _motif_verdicts(found)
    notes = [
        "Shown is the instance in the middle of the list, of graphs the one in the middle of those whose motif is a "
        "ring, if there are any. Instances: "
        + ", ".join(f"{TITLES[d]} {value['instances']}" for d, value in found.items())
        + ".",
        *missing(scope),
    ]
    if molecules is not None:
        drawings.append(
            Drawing(
                "molecules",
                "Mutagenic molecules with carbon rings and NO2 or NH2, explained by GFlowExplainer (left), by 8 to 10 "
                "atoms of it (middle) and by as many best edges of PGExplainer (right); dashes mark the ground truth, "
                "the bonds of the groups.",
                partial(draw_molecules, molecules["shown"], PG),
            )
        )
        tables.append(_molecule_table(molecules))
        verdicts += _molecule_verdicts(molecules)
    if sentences is not None:
        drawings.append(
            Drawing(
                "sentences",
                "The two negative sentences of the paper's figure: the words of the most probable subgraph, and the "
                "probability of each word.",
                partial(draw_sentences, sentences["shown"]),
            )
        )
        notes.append(
            f"Sentences: {sentences['provenance']}. The GNN was trained here: "
            + ", ".join(f"{share:.1%} of {name}" for name, share in sentences["accuracies"].items())
            + f" right; the paper's {PRINTED_ACCURACY:.1%}."
        )
    verdicts.append(_sentence_verdict(sentences))
    return Outcome(tables, verdicts, drawings, notes)


def _table(found: Mapping[str, Any]) -> Table:
    rows = []
    for dataset, value in found.items():
        for name in (OURS, RG):
            case, score = value["shown"], value["scores"][name]
            chosen = [m for c, m in zip(case["found"][name], case["motif"], strict=True) if c]
            here = f"{sum(chosen)} of {len(chosen)} chosen, motif {sum(case['motif'])}"
            means = f"{score['nodes']:.1f}", *(f"{score[kind]:.3f}" for kind in ("inside", "found", "overlap"))
            rows.append((f"{TITLES[dataset]}, {name}", NOT_THERE, here, *means))
    heads = ("", "paper", "shown: in the motif", "nodes", "share in the motif", "share of the motif found", "overlap")
    return Table("Explanations as subgraphs, means over all instances (the paper shows figures)", heads, tuple(rows))


def _molecule_table(value: Mapping[str, Any]) -> Table:
    rows = tuple(
        (name, NOT_THERE, f"{s['pieces']:.2f}", f"{s['connected']:.3f}", f"{s['found']:.3f}", f"{s['ring']:.3f}")
        for name, s in value["scores"].items()
    )
    heads = ("", "paper", "pieces", "in one piece", "atoms of NO2 / NH2 found", "touches a carbon ring")
    return Table(f"Molecules, means over {value['instances']} (the paper shows figures)", heads, rows)


def _motif_verdicts(found: Mapping[str, Any]) -> list[Verdict]:
    scores = {TITLES[d]: value["scores"] for d, value in found.items()}

    def both(kind: str) -> dict[str, str]:
        return {title: f"{s[OURS][kind]:.3f} against {s[RG][kind]:.3f}" for title, s in scores.items()}

    return [
        Verdict.of(
            "GFlowExplainer finds the motifs (at least four fifths of their nodes, on average).",
            {title: (scores[title][OURS]["found"] >= 0.8, words) for title, words in both("found").items()},
            "Share of the motif in the most probable subgraph, ours against RG-Explainer's: ",
        ),
        Verdict.of(
            "Its subgraphs are nearer to the motifs than RG-Explainer's, with relatively fewer irrelevant nodes.",
            {
                title: (scores[title][OURS]["overlap"] > scores[title][RG]["overlap"], words)
                for title, words in both("overlap").items()
            },
            "Nodes in both over nodes in either: ",
        ),
    ]


def _molecule_verdicts(value: Mapping[str, Any]) -> list[Verdict]:
    ours, larger, peer = (value["scores"][name] for name in (OURS, LARGER, PG))
    kinds = {"atoms of the groups found": "found", "molecules whose carbon ring is touched": "ring"}
    return [
        Verdict.of(
            "On molecules GFlowExplainer's explanations are connected, PGExplainer's are single edges here and there.",
            {
                "ours": (larger["connected"] == 1, f"{larger['connected']:.0%}"),
                "PGExplainer's": (
                    peer["connected"] < 0.5,
                    f"{peer['connected']:.0%}, {peer['pieces']:.2f} pieces each",
                ),
            },
            "In one piece: ",
        ),
        Verdict.of(
            "Carbon rings and the groups NO2 and NH2 are identified (on most molecules).",
            {
                words: (
                    max(ours[kind], larger[kind]) > 0.5,
                    f"{ours[kind]:.0%} (with 8 to 10 atoms {larger[kind]:.0%})",
                )
                for words, kind in kinds.items()
            },
            "Most probable subgraphs: ",
        ),
    ]


def _sentence_verdict(value: Mapping[str, Any] | None) -> Verdict:
    claim = "The words of the two sentences that make them negative are what the explanation holds."
    if value is None:
        return Verdict(claim, UNKNOWN, "The text of the sentences is not there.")
    chosen = [
        " ".join(word for word, inside in zip(case["words"], case["chosen"], strict=True) if inside)
        for case in value["shown"]
    ]
    right = sum(case["right"] for case in value["shown"])
    return Verdict(
        claim,
        UNKNOWN,
        f"The paper's GNN and BERT vectors are not at hand, and whether words explain a class is the reader's to say. "
        f"The GNN trained here judges {right} of {len(chosen)} right; chosen: "
        + "; ".join(
            f"'{words}', which holds the class in random company better than {case['better']:.0%} of random connected "
            f"parts of as many words"
            for words, case in zip(chosen, value["shown"], strict=True)
        )
        + ".",
    )


EXPERIMENT = Experiment(
    name="qualitative",
    title="Explanations to look at",
    plan=plan,
    present=present,
)
