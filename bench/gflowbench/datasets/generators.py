"""The five synthetic benchmarks, generated from their definitions with a seed, in any size.

With default sizes the node ids, labels, features, split sizes and evaluated instances are those of the
published files; only the random parts differ. No global random state is read or changed.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gflowbench.datasets.benchmark import Benchmark
from gflowbench.datasets.composition import (
    Composition,
    Integers,
    add_noise,
    attach,
    attach_each,
    draw_pairs,
    place_anchors,
)
from gflowbench.datasets.motifs import Motif, cycle, grid, house
from gflowbench.datasets.preferential_attachment import preferential_attachment
from gflowbench.datasets.splits import add_masks, split_positions
from gflowexplainer.errors import ConfigError, one_of

FEATURES = 10
ATTACHMENTS = ("spaced", "random")


def ba_shapes(
    seed: int = 0,
    *,
    num_motifs: int = 80,
    num_base_nodes: int = 300,
    edges_per_node: int = 5,
    noise: float = 0.01,
    attachment: str = "spaced",
) -> Benchmark:
    """Generates BA-Shapes: houses on a Barabási-Albert graph, four classes by role, constant features.

    Args:
        seed: Seed of everything random.
        num_motifs: Number of houses.
        num_base_nodes: Nodes of the Barabási-Albert graph.
        edges_per_node: Edges that each of its nodes brings.
        noise: Random edges added at the end, as a share of all edges.
        attachment: ``"spaced"`` (as published) or ``"random"``: which base nodes carry a house.

    Returns:
        A node task. Evaluated is node 0 of each house but the first quarter (published: nodes 400, 405, ...).
    """
    sizes = {"num_motifs": num_motifs, "num_base_nodes": num_base_nodes, "edges_per_node": edges_per_node}
    _check(sizes, noise, attachment)
    rng = np.random.default_rng(seed)
    graph = _houses_on_ba(num_motifs, num_base_nodes, edges_per_node, noise, attachment, rng)
    index = _first_nodes(num_base_nodes, house(), num_motifs)[num_motifs // 4 :]
    told = {**sizes, "noise": noise, "attachment": attachment}
    return _node_benchmark("ba-shapes", graph, house(), index, rng, seed, told)


def ba_community(
    seed: int = 0,
    *,
    num_motifs: int = 80,
    num_base_nodes: int = 300,
    edges_per_node: int = 5,
    noise: float = 0.01,
    num_bridges: int | None = None,
    attachment: str = "spaced",
) -> Benchmark:
    """Generates BA-Community: two BA-Shapes graphs, joined by random bridges, with Gaussian features.

    The first two features have mean -1 in the first community and +1 in the second, and variance 1/2; the
    other eight are standard normal. Rows are then divided by their sum, as in the published file.

    Args:
        seed: Seed of everything random.
        num_motifs: Number of houses of each community.
        num_base_nodes: Nodes of each Barabási-Albert graph.
        edges_per_node: Edges that each of their nodes brings.
        noise: Random edges within each community, as a share of its edges.
        num_bridges: Edges between the communities; if ``None``, a quarter of the number of nodes (350).
        attachment: ``"spaced"`` (as published) or ``"random"``.

    Returns:
        A node task with eight classes. Evaluated are the same nodes as in :func:`ba_shapes`, all in the first
        community, as published.
    """
    sizes = {"num_motifs": num_motifs, "num_base_nodes": num_base_nodes, "edges_per_node": edges_per_node}
    _check(sizes, noise, attachment)
    rng = np.random.default_rng(seed)
    left, right = (_houses_on_ba(num_motifs, num_base_nodes, edges_per_node, noise, attachment, rng) for _ in range(2))
    half = left.num_nodes
    graph = Composition(
        edges=np.concatenate([left.edges, right.edges + half]),
        marked=np.concatenate([left.marked, right.marked]),
        motif_id=np.concatenate([left.motif_id, np.where(right.motif_id < 0, -1, right.motif_id + num_motifs)]),
        labels=np.concatenate([left.labels, right.labels + 4]),
        anchors=np.concatenate([left.anchors, right.anchors + half]),
    )
    bridges = graph.num_nodes // 4 if num_bridges is None else num_bridges
    if bridges < 0:
        raise ConfigError(f"'num_bridges' must not be negative (got {bridges}).")
    graph.add(draw_pairs(graph, bridges, (0, half), (half, 2 * half), rng))
    features = rng.standard_normal((2 * half, FEATURES))
    features[:, :2] *= np.sqrt(0.5)
    features[:half, :2] -= 1
    features[half:, :2] += 1
    index = _first_nodes(num_base_nodes, house(), num_motifs)[num_motifs // 4 :]
    told = {**sizes, "noise": noise, "num_bridges": bridges, "attachment": attachment}
    rows = torch.from_numpy((features / features.sum(axis=1, keepdims=True)).astype(np.float32))
    return _node_benchmark("ba-community", graph, house(), index, rng, seed, told, rows)


def tree_cycles(
    seed: int = 0,
    *,
    num_motifs: int = 60,
    num_base_nodes: int = 511,
    cycle_size: int = 6,
    noise: float = 0.01,
    second_link: float = 0.5,
    attachment: str = "spaced",
) -> Benchmark:
    """Generates Tree-Cycles: rings on a balanced binary tree; class 1 on the rings.

    Args:
        seed: Seed of everything random.
        num_motifs: Number of rings (published: 60).
        num_base_nodes: Nodes of the tree; node ``i`` hangs on ``(i - 1) // 2``.
        cycle_size: Nodes of a ring, at least 3.
        noise: Random edges added at the end, as a share of all edges.
        second_link: Probability that a ring has a second edge to the tree, from one of its nodes 1 to 3
            to one of the three tree nodes after its first one: a habit of the published generator.
        attachment: ``"spaced"`` (as published) or ``"random"``.

    Returns:
        A node task. Evaluated is node 0 of every ring, the attached one (published: nodes 511, 517, ...).
    """
    sizes = {"num_motifs": num_motifs, "num_base_nodes": num_base_nodes, "cycle_size": cycle_size}
    _check(sizes, noise, attachment)
    if cycle_size < 3 or not 0 <= second_link <= 1:
        raise ConfigError(
            f"A ring has at least 3 nodes (got cycle_size={cycle_size}) and 'second_link' is a probability "
            f"(got {second_link})."
        )
    rng = np.random.default_rng(seed)
    motif = cycle(cycle_size)
    anchors = place_anchors(num_base_nodes, num_motifs, attachment, rng)
    graph = attach(_binary_tree(num_base_nodes), num_base_nodes, motif, anchors)
    first = _first_nodes(num_base_nodes, motif, num_motifs)
    linked = rng.random(num_motifs) < second_link
    own = first + rng.integers(1, min(4, cycle_size), num_motifs)
    other = (graph.anchors + rng.integers(1, 4, num_motifs)) % num_base_nodes
    graph.add(np.stack([own, other], axis=1)[linked])
    add_noise(graph, noise, rng)
    told = {**sizes, "noise": noise, "second_link": second_link, "attachment": attachment}
    return _node_benchmark("tree-cycles", graph, motif, first, rng, seed, told)


def tree_grid(
    seed: int = 0,
    *,
    num_motifs: int = 80,
    num_base_nodes: int = 511,
    noise: float = 0.01,
    attachment: str = "spaced",
) -> Benchmark:
    """Generates Tree-Grid: grids of three by three on a balanced binary tree; class 1 on the grids.

    Args:
        seed: Seed of everything random.
        num_motifs: Number of grids.
        num_base_nodes: Nodes of the tree; node ``i`` hangs on ``(i - 1) // 2``.
        noise: Random edges added at the end, as a share of all edges (the paper's edge count fits 0.1).
        attachment: ``"spaced"`` (as published) or ``"random"``.

    Returns:
        A node task. Evaluated are the first 289 of 720 motif nodes, whatever their role, as published; in
        other sizes the same share.
    """
    sizes = {"num_motifs": num_motifs, "num_base_nodes": num_base_nodes}
    _check(sizes, noise, attachment)
    rng = np.random.default_rng(seed)
    anchors = place_anchors(num_base_nodes, num_motifs, attachment, rng)
    graph = attach(_binary_tree(num_base_nodes), num_base_nodes, grid(), anchors)
    add_noise(graph, noise, rng)
    index = num_base_nodes + np.arange(max(num_motifs * 9 * 289 // 720, 1))
    told = {**sizes, "noise": noise, "attachment": attachment}
    return _node_benchmark("tree-grid", graph, grid(), index, rng, seed, told)


def ba_2motifs(
    seed: int = 0,
    *,
    num_graphs: int = 1000,
    num_base_nodes: int = 20,
    edges_per_node: int = 1,
    attachment: str = "spaced",
) -> Benchmark:
    """Generates BA-2motifs: Barabási-Albert graphs, the first half with a five-ring, the second with a house.

    Every motif is attached (in the published file 40 are not), by its node 0.

    Args:
        seed: Seed of everything random.
        num_graphs: Number of graphs; class 0 (ring) gets the smaller half.
        num_base_nodes: Nodes of each Barabási-Albert graph.
        edges_per_node: Edges that each of its nodes brings.
        attachment: ``"spaced"``: to base node 0, as published; ``"random"``: to any base node.

    Returns:
        A graph task. Evaluated are 200 of 1000 graphs, half of each class; in other sizes the same share.
    """
    sizes = {"num_graphs": num_graphs, "num_base_nodes": num_base_nodes, "edges_per_node": edges_per_node}
    _check(sizes, 0.0, attachment)
    if num_graphs < 2:
        raise ConfigError(f"'num_graphs' must be at least 2, one of each class (got {num_graphs}).")
    rng = np.random.default_rng(seed)
    bases = preferential_attachment(num_base_nodes, edges_per_node, rng, copies=num_graphs)
    anchors = np.concatenate([place_anchors(num_base_nodes, 1, attachment, rng) for _ in range(num_graphs)])
    rings = num_graphs // 2
    graphs = [
        *attach_each(bases[:rings], num_base_nodes, cycle(5), anchors[:rings]),
        *attach_each(bases[rings:], num_base_nodes, house(), anchors[rings:]),
    ]
    for position, graph in enumerate(graphs):
        graph.x = _constant_features(num_base_nodes + 5)
        graph.y = torch.tensor([int(position >= rings)])
    evaluated = np.arange(max(num_graphs // 10, 1))
    return Benchmark(
        name="ba-2motifs",
        task="graph",
        graphs=graphs,
        index=torch.from_numpy(np.concatenate([evaluated, rings + evaluated])),
        num_classes=2,
        source="generated",
        provenance=_provenance(seed, {**sizes, "attachment": attachment}),
        motif_size=5,
        splits=split_positions(rng.permutation(num_graphs)),
    )


def _check(sizes: dict[str, int], noise: float, attachment: str) -> None:
    """Refuses sizes that make no graph."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ConfigError(f"'{name}' must be a positive integer (got {value!r}).")
    if sizes.get("edges_per_node", 0) >= sizes["num_base_nodes"]:
        raise ConfigError(
            f"'edges_per_node' must be below 'num_base_nodes' "
            f"(got {sizes['edges_per_node']} and {sizes['num_base_nodes']})."
        )
    if not 0 <= noise <= 1:
        raise ConfigError(f"'noise' must be a share between 0 and 1 (got {noise}).")
    one_of("attachment", attachment, ATTACHMENTS)


def _houses_on_ba(
    num_motifs: int,
    num_base_nodes: int,
    edges_per_node: int,
    noise: float,
    attachment: str,
    rng: np.random.Generator,
) -> Composition:
    """One BA-Shapes graph under construction."""
    base = preferential_attachment(num_base_nodes, edges_per_node, rng)[0]
    graph = attach(base, num_base_nodes, house(), place_anchors(num_base_nodes, num_motifs, attachment, rng))
    add_noise(graph, noise, rng)
    return graph


def _binary_tree(num_nodes: int) -> Integers:
    """Edges of the complete binary tree, numbered level by level, shape ``[num_nodes - 1, 2]``."""
    child = np.arange(1, num_nodes)
    return np.stack([(child - 1) // 2, child], axis=1)


def _first_nodes(num_base_nodes: int, motif: Motif, num_motifs: int) -> Integers:
    """Node 0 of every motif, shape ``[num_motifs]``."""
    return num_base_nodes + np.arange(num_motifs) * motif.size


def _constant_features(num_nodes: int) -> Tensor:
    """Ten equal features a node that sum to one."""
    return torch.full((num_nodes, FEATURES), 1 / FEATURES)


def _node_benchmark(
    name: str,
    graph: Composition,
    motif: Motif,
    index: Integers,
    rng: np.random.Generator,
    seed: int,
    told: dict[str, object],
    features: Tensor | None = None,
) -> Benchmark:
    """Wraps a finished composition with features and random masks."""
    data: Data = graph.to_data()
    data.x = _constant_features(graph.num_nodes) if features is None else features
    return Benchmark(
        name=name,
        task="node",
        graphs=[add_masks(data, rng.permutation(graph.num_nodes))],
        index=torch.from_numpy(index),
        num_classes=int(graph.labels.max()) + 1,
        source="generated",
        provenance=_provenance(seed, told),
        motif_size=motif.size,
    )


def _provenance(seed: int, told: dict[str, object]) -> str:
    """Says seed and sizes in one sentence."""
    return f"generated with seed {seed}: " + ", ".join(f"{key}={value}" for key, value in told.items())
