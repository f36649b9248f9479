"""An explanation as one row of a Parquet file: what was sampled, and the probabilities that are not negligible.

=========================  ============================================================================================
``instance``               The explained node, or the position of the graph.
``class``                  The class that is explained; null for regression.
``prediction``             What the model predicts on the whole graph: class probabilities, or values.
``subgraphs``              The most probable ones, best first: ``nodes``, ``size``, ``probability``, ``reward``.
``num_subgraphs``          How many different ones were sampled.
``nodes``, ``edges``       Those of some probability: ``node`` or ``source`` and ``target``, and ``probability``.
``num_samples``            Subgraphs that were sampled.
``error``                  How far the probabilities may be off, in total variation.
=========================  ============================================================================================
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from gflowexplainer import SubgraphExplanation
from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.storage.files import write_bytes
from gflowexplainer.storage.manifest import Manifest

if TYPE_CHECKING:
    import pyarrow

FOLDER = "explanations"
"""Where the files lie in the folder of a run."""


def import_ray() -> Any:
    """Imports what bulk explaining needs, or says what to install."""
    try:
        import pyarrow.parquet  # noqa: F401
        import ray.data
    except ImportError as error:
        raise ConfigError(
            f"Bulk explaining needs '{error.name}'. Install it with: pip install 'gflowexplainer[ray]'"
        ) from error
    return ray


def schema() -> pyarrow.Schema:
    """Returns the columns and their types."""
    import pyarrow as pa

    whole, real = pa.int64(), pa.float32()
    subgraph = {"nodes": pa.list_(whole), "size": pa.int32(), "probability": pa.float64(), "reward": pa.float64()}
    node = {"node": whole, "probability": real}
    edge = {"source": whole, "target": whole, "probability": real}
    return pa.schema(
        {
            "instance": whole,
            "class": whole,
            "prediction": pa.list_(pa.float64()),
            "subgraphs": pa.list_(pa.struct(subgraph)),
            "num_subgraphs": pa.int32(),
            "nodes": pa.list_(pa.struct(node)),
            "edges": pa.list_(pa.struct(edge)),
            "num_samples": pa.int32(),
            "error": pa.float64(),
        }
    )


def row_of(instance: int, explanation: SubgraphExplanation, *, top: int, smallest: float) -> dict[str, Any]:
    """Makes the row of one explanation.

    Args:
        instance: The explained node, or the position of the graph.
        explanation: Its explanation.
        top: Subgraphs to keep at most.
        smallest: Smallest probability of a node or an edge that is kept.
    """
    node, probability = _kept(explanation.node_mask.sum(dim=1), smallest)
    edge, both = _kept(explanation.edge_mask, smallest)
    source, target = explanation.edge_index[:, edge].tolist()
    return {
        "instance": instance,
        "class": explanation.explained_class,
        "prediction": list(explanation.whole_prediction or ()),
        "subgraphs": [
            {"nodes": list(s.nodes), "size": len(s), "probability": s.probability, "reward": s.reward}
            for s in explanation.subgraphs[:top]
        ],
        "num_subgraphs": len(explanation.subgraphs),
        "nodes": [{"node": n, "probability": p} for n, p in zip(node.tolist(), probability.tolist(), strict=True)],
        "edges": [
            {"source": s, "target": t, "probability": p} for s, t, p in zip(source, target, both.tolist(), strict=True)
        ],
        "num_samples": explanation.num_samples,
        "error": explanation.error,
    }


def _kept(mask: Tensor, smallest: float) -> tuple[Tensor, Tensor]:
    """Returns the places of a mask where it is not negligible, and its values there."""
    place = (mask >= smallest).nonzero().flatten()
    return place, mask[place]


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Writes rows as a Parquet file that is there whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    content = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema()), content, compression="zstd")
    write_bytes(path, content.getvalue())


def read_rows(out: str | Path, columns: Sequence[str] | None = None) -> pyarrow.Table:
    """Reads what was explained in bulk into ``out``, or some ``columns`` of it, as one Arrow table.

    Files that have changed since they were written, and files of others among them, are refused.
    """
    import_ray()
    import pyarrow as pa
    from pyarrow import parquet

    files = Manifest(Path(out))
    for path in (Path(out) / FOLDER).glob("*.parquet"):
        if f"{FOLDER}/{path.name}" not in files:
            raise CheckpointError(f"'{path}' was not written by this run. Delete it and run the same command again.")
    wanted = None if columns is None else list(columns)
    empty = schema().empty_table()
    parts = [empty if wanted is None else empty.select(wanted)]
    for name in sorted(files.inside(FOLDER)):
        try:
            parts.append(parquet.read_table(Path(out) / name, columns=wanted))
        except (pa.ArrowException, OSError) as error:
            raise CheckpointError(
                f"'{Path(out) / name}' cannot be read ({error}). Delete it and run the same command again."
            ) from error
    return pa.concat_tables(parts)
