"""Cut vertices by Theorem 1: right on a million states, and how fast beside searches from scratch.

*Agreement*: every state of random growths on random graphs (sparse, dense, trees, cliques with tails) against
``networkx.articulation_points``. The check is kept after each part and taken up again where it was interrupted,
as long as ``cut_vertices.py`` has not changed. *Time*: one state-step is one node added to one state. Theorem 1
updates a whole batch from the new node's edges; the peers search each state from scratch, on graphs that were
built for them beforehand, so building costs them nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import networkx as nx
import numpy as np
import rustworkx as rx
import torch
from torch import Tensor
from torch_geometric.data import Data
from tqdm.auto import tqdm

from benchmarks.measuring import environment, interleaved, ratio, results_folder, threads, write_json
from gflowbench.paper.plain_cut_vertices import tarjan
from gflowexplainer.flow import cut_vertices
from gflowexplainer.flow.cut_vertices import add_node, empty_cut_matrix
from gflowexplainer.flow.sampling import Rollouts, grow_uniformly, roll_out
from gflowexplainer.flow.states import States
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import inner_neighbors
from gflowexplainer.ops.hashed_random import uniform

FAMILIES = ("sparse", "dense", "tree", "clique with tails")
WIDTHS = (8, 16, 24, 32, 48, 64)
"""Size bounds of the agreement, in turn."""
CURVE = (5, 7, 10, 14, 20, 28, 40, 64)
"""Size bounds of the times."""
BATCH = 1024
SEED = 0


def random_graph(family: str, num_nodes: int, generator: np.random.Generator) -> nx.Graph:
    """Draws a connected graph of a family: a random tree, with random edges or a clique laid over it."""
    seed = int(generator.integers(2**31))
    if family == "clique with tails":
        size = int(generator.integers(3, num_nodes // 2 + 1))
        graph = nx.complete_graph(size)
        # Each tail goes on from the node before it or begins at any node.
        for node in range(size, num_nodes):
            graph.add_edge(node, node - 1 if generator.random() < 0.7 else int(generator.integers(node)))
    else:
        graph = nx.random_labeled_tree(num_nodes, seed=seed)
        density = {"tree": 0.0, "sparse": 1.5 / num_nodes, "dense": 0.4}[family]
        graph.add_edges_from(nx.gnp_random_graph(num_nodes, density, seed=seed).edges)
    order = generator.permutation(num_nodes).tolist()
    return nx.relabel_nodes(graph, dict(enumerate(order)))


def instances_of(width: int, count: int, seed: int) -> Instances:
    """Draws ``count`` graphs with up to three times ``width`` nodes, the families in turn."""
    generator = np.random.default_rng((SEED, width, seed))
    graphs = []
    for number in range(count):
        num_nodes = int(generator.integers(max(width, 6), 3 * width + 1))
        graph = random_graph(FAMILIES[number % len(FAMILIES)], num_nodes, generator)
        edges = torch.tensor(list(graph.edges)).t()
        graphs.append(Data(x=torch.zeros(num_nodes, 1), edge_index=edges))
    return Instances.of_graphs(graphs, first=seed * count)


def grow(instances: Instances, rollouts: int, width: int) -> tuple[Rollouts, Tensor]:
    """Grows random connected subgraphs of ``width`` nodes, ``R`` in total.

    Returns:
        The rollouts, and which members of the final states are neighbours, in order of insertion, ``[R, K, K]``.
    """
    instance = torch.arange(len(instances)).repeat_interleave(rollouts)
    grown = roll_out(instances, instance, None, width, grow_uniformly, ordered=True)
    adjacent = inner_neighbors(instances, grown.subgraphs)
    return grown, adjacent


# Agreement


def expected_cut_vertices(adjacent: Tensor) -> Tensor:
    """Asks networkx for the cut vertices of every prefix of growths ``[R, K, K]``; shape ``[R, K, K]``.

    Entry ``[r, t, i]`` tells whether member ``i`` is a cut vertex of the first ``t + 1`` members.
    """
    expected = torch.zeros_like(adjacent)
    for rollout, matrix in enumerate(adjacent.numpy()):
        graph = nx.Graph()
        for node, row in enumerate(matrix):
            graph.add_node(node)
            graph.add_edges_from((node, int(other)) for other in np.flatnonzero(row[:node]))
            expected[rollout, node, list(nx.articulation_points(graph))] = True
    return expected


def check_part(width: int, states: int, seed: int) -> dict[str, int]:
    """Grows about so many states and counts those that differ from networkx in any member."""
    instances = instances_of(width, 4 * len(FAMILIES), seed)
    grown, adjacent = grow(instances, max(1, round(states / width / len(instances))), width)
    visited = grown.states
    nonempty = torch.nonzero(visited.size[grown.state] > 0).view(-1)
    state = grown.state[nonempty]
    found = torch.zeros_like(adjacent)
    found[grown.rollout[nonempty], visited.size[state] - 1] = visited.is_cut[state]
    expected = expected_cut_vertices(adjacent)
    return {
        "states": nonempty.numel(),
        "cut_vertices": int(expected.sum()),
        "differences": int((found != expected).any(dim=2).sum()),
        # Theorem 1 reads cut vertices off the matrix: a row is zero exactly where its member is none.
        "matrix_differences": int(((visited.cut != 0).any(dim=2) != visited.is_cut).any(dim=1).sum()),
    }


def check_agreement(path: Path, states: int, part: int = 4000) -> dict[str, Any]:
    """Checks ``states`` states in parts, keeping the count in ``path`` after each."""
    plan = {
        "reference": f"networkx {nx.__version__}, articulation_points, every state",
        "families": list(FAMILIES),
        "max_nodes": list(WIDTHS),
        "seed": SEED,
        "states_wanted": states,
        "states_of_a_part": part,
        "code": hashlib.sha256(Path(cut_vertices.__file__).read_bytes()).hexdigest()[:16],
    }
    record: dict[str, Any] = {"plan": plan, "parts": 0, "seconds": 0.0}
    record |= dict.fromkeys(("states", "cut_vertices", "differences", "matrix_differences"), 0)
    if path.exists() and (kept := json.loads(path.read_text()))["plan"] == plan:
        record = kept
    with tqdm(total=states, initial=record["states"], desc="agreement", unit="state", smoothing=0) as bar:
        while record["states"] < states:
            began = time.perf_counter()
            counts = check_part(WIDTHS[record["parts"] % len(WIDTHS)], part, record["parts"])
            record |= {name: record[name] + value for name, value in counts.items()}
            record["parts"] += 1
            record["seconds"] += time.perf_counter() - began
            write_json(path, record | environment())
            bar.update(counts["states"])
            bar.set_postfix(differences=record["differences"], refresh=False)
    return record


# Time


def prefixes(adjacent: Tensor, every: int, first: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Lists size and edges of the states after step ``first`` and later, of every so manyth growth of ``[R, K, K]``."""
    listed = []
    for matrix in adjacent[::every]:
        edges = torch.nonzero(matrix.tril()).tolist()
        for size in range(first + 1, matrix.size(0) + 1):
            listed.append((size, [(i, j) for i, j in edges if i < size]))
    return listed


def peers_of(listed: list[tuple[int, list[tuple[int, int]]]]) -> dict[str, Callable[[], list[set[int]]]]:
    """Builds the graphs of each peer and gives the peers as functions without arguments."""
    theirs, lists, rust = [], [], []
    for size, edges in listed:
        graph = nx.empty_graph(size)
        graph.add_edges_from(edges)
        theirs.append(graph)
        lists.append([list(graph[node]) for node in range(size)])
        compact = rx.PyGraph()
        compact.add_nodes_from(range(size))
        compact.add_edges_from_no_data(edges)
        rust.append(compact)
    return {
        "networkx": lambda: [set(nx.articulation_points(graph)) for graph in theirs],
        "Tarjan in Python": lambda: [tarjan(neighbors) for neighbors in lists],
        "rustworkx": lambda: [rx.articulation_points(graph) for graph in rust],
    }


def replay_theorem(adjacent: Tensor, first: int) -> tuple[Callable[[], float], Tensor]:
    """Prepares Theorem 1 along growths ``[B, K, K]``.

    Returns:
        A function that times itself over step ``first`` and later, and the cut vertices after each of these steps,
        shape ``[B, K - first, K]``.
    """
    batch, width, _ = adjacent.shape
    connections = [adjacent[:, step] & (torch.arange(width) < step) for step in range(width)]
    sizes = [torch.full((batch,), step) for step in range(width)]
    before = empty_cut_matrix(batch, width)
    for step in range(first):
        add_node(*before, connections[step], sizes[step])

    def timed() -> float:
        cut, is_cut = (tensor.clone() for tensor in before)
        began = time.thread_time()
        for step in range(first, width):
            add_node(cut, is_cut, connections[step], sizes[step])
        return time.thread_time() - began

    cut, is_cut = (tensor.clone() for tensor in before)
    found = []
    for step in range(first, width):
        add_node(cut, is_cut, connections[step], sizes[step])
        found.append(is_cut.clone())
    return timed, torch.stack(found, dim=1)


def replay_states(instances: Instances, rollouts: int, width: int, first: int) -> Callable[[], float]:
    """Returns the whole ``States.step`` (members, frontier, cut vertices) along growths, timing itself."""
    instance = torch.arange(len(instances)).repeat_interleave(rollouts)

    def advance(states: States, step: int) -> tuple[States, float]:
        every = torch.arange(len(states))
        chosen = grow_uniformly(states, every, uniform(step, every)[:, None]).entry
        began = time.thread_time()
        return states.step(chosen), time.thread_time() - began

    before = States.initial(instances, instance, None, width)
    for step in range(first):
        before, _ = advance(before, step)

    def timed() -> float:
        states, total = before, 0.0
        for step in range(first, width):
            states, seconds = advance(states, step)
            total += seconds
        return total

    return timed


@dataclass(frozen=True)
class Contest:
    """All methods on the same states: growths up to one size bound, from step ``first`` on.

    Attributes:
        width: The size bound.
        contestants: The methods, as functions without arguments.
        steps: State-steps that one call of each does.
        facts: What else is worth knowing of these states.
    """

    width: int
    contestants: dict[str, Callable[[], object]]
    steps: dict[str, int]
    facts: dict[str, Any]

    @classmethod
    def prepare(cls, width: int, first: int = 0, graphs: int = 64, every: int = 16) -> Contest:
        """Grows a batch; the peers get the states of every so manyth growth, which is one a graph."""
        instances = instances_of(width, graphs, 1_000_000)
        rollouts = BATCH // graphs
        _, adjacent = grow(instances, rollouts, width)
        listed = prefixes(adjacent, every, first)
        peers = peers_of(listed)
        theorem, found = replay_theorem(adjacent, first)
        ours = [set(torch.nonzero(row).view(-1).tolist()) for row in found[::every].reshape(-1, width)]
        differences = {name: sum(a != b for a, b in zip(ours, run(), strict=True)) for name, run in peers.items()}
        whole = replay_states(instances, rollouts, width, first)
        batched = BATCH * (width - first)
        return cls(
            width,
            {**peers, "States.step": whole, "Theorem 1": theorem},
            {**dict.fromkeys(peers, len(listed)), "States.step": batched, "Theorem 1": batched},
            {"differences": differences, "cut_vertices_of_a_state": sum(map(len, ours)) / len(ours)},
        )

    def summarize(self, seconds: dict[str, list[float]]) -> dict[str, Any]:
        """Turns the seconds of the rounds into microseconds of a state-step."""
        per_step = {name: [1e6 * value / self.steps[name] for value in seconds[name]] for name in self.contestants}
        peers = self.facts["differences"]
        return {
            "max_nodes": self.width,
            "batch": BATCH,
            "microseconds": {name: min(values) for name, values in per_step.items()},
            "median_microseconds": {name: median(values) for name, values in per_step.items()},
            "times_faster": {name: ratio(per_step, name, "Theorem 1") for name in peers},
            "state_steps": self.steps,
            **self.facts,
        }


def time_contests(contests: list[Contest], repeats: int) -> list[dict[str, Any]]:
    """Times all contests round by round, so that all size bounds see the same ups and downs of the machine."""
    everyone = {
        (number, name): run for number, contest in enumerate(contests) for name, run in contest.contestants.items()
    }
    seconds = interleaved(everyone, repeats, time.thread_time)
    return [
        contest.summarize({name: seconds[number, name] for name in contest.contestants})
        for number, contest in enumerate(contests)
    ]


def draw_curve(results: list[dict[str, Any]], folder: Path) -> None:
    """Draws time over size, readable without colour."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullLocator

    from gflowexplainer.report.figures import save_figure

    styles = {
        "networkx": ("networkx", "#9a9a9a", "s", "-"),
        "Tarjan in Python": ("Tarjan, plain Python", "#d08a00", "^", "--"),
        "rustworkx": ("rustworkx", "#0072b2", "D", "-."),
        "States.step": (f"whole step of a state, batch of {BATCH}", "#606060", "x", ":"),
        "Theorem 1": (f"Theorem 1, batch of {BATCH}", "#000000", "o", "-"),
    }
    sizes = [result["max_nodes"] for result in results]
    figure, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    for name, (label, color, marker, line) in styles.items():
        times = [result["microseconds"][name] for result in results]
        width = 2.2 if name == "Theorem 1" else 1.4
        axes.plot(sizes, times, label=label, color=color, marker=marker, linestyle=line, linewidth=width, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="size bound K (nodes)", ylabel="time of one state-step (µs)")
    axes.set_title("Cut vertices of growing subgraphs: mean over all steps up to K, one thread", fontsize=10)
    axes.set_xticks(sizes)
    axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(which="major", color="#dddddd", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    save_figure(figure, folder / "cut_vertices")
    pyplot.close(figure)


def print_times(title: str, results: list[dict[str, Any]]) -> None:
    """Prints times as a table."""
    names = list(results[0]["microseconds"])
    print(f"{title}: microseconds of a state-step; in brackets how many times faster Theorem 1 is")
    print(f"{'K':>4}" + "".join(f"{name:>20}" for name in names))
    for result in results:
        cells = []
        for name in names:
            faster = result["times_faster"].get(name)
            cells.append(f"{result['microseconds'][name]:.2f}" + (f" ({faster:.1f}x)" if faster else ""))
        print(f"{result['max_nodes']:>4}" + "".join(f"{cell:>20}" for cell in cells))


def main(fast: bool = False) -> None:
    """Checks the agreement, times the state-step and draws the curve."""
    folder = results_folder("cut_vertices", fast)
    widths, repeats = ((5, 20), 3) if fast else (CURVE, 30)
    with threads(1):
        agreement = check_agreement(folder / "agreement.json", 10_000 if fast else 1_000_000)
        print(
            f"{agreement['states']} states, {agreement['cut_vertices']} cut vertices: "
            f"{agreement['differences']} differences to networkx"
        )
        contests = [Contest.prepare(width) for width in widths]
        contests += [Contest.prepare(width, first=width - 1) for width in widths]
        results = time_contests(contests, repeats)
        growth, last = results[: len(widths)], results[len(widths) :]
        times = {
            "clock": "processor time of the one thread; best of the rounds; ratios are medians over the rounds",
            "rounds": repeats,
            "seed": SEED,
            "all_steps_up_to_K": growth,
            "last_step_to_K": last,
            **environment(),
        }
    write_json(folder / "times.json", times)
    print_times("All steps of growths up to K", growth)
    print_times("Only the last step, to K", last)
    draw_curve(growth, folder)
