"""The published GNNs that the paper explains, from the reference folder.

They were trained by the authors of the replication study the paper cites (Holdijk et al., 2021). Their
repository carries no licence, so the files are read where a user has them and are no part of this package.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from gflowbench.datasets import load, reference_folder
from gflowbench.models.architecture import Architecture
from gflowbench.models.model_accuracy import SPLITS, Accuracy, accuracies
from gflowbench.models.networks import GraphNetwork, NodeNetwork
from gflowbench.models.weights import fill, read_safetensors
from gflowexplainer.errors import CheckpointError, DatasetError, one_of

VARIANTS = ("gnn", "pg")
# Largest molecule (417 atoms) and one more: the published pipeline's size of every Mutagenicity graph.
MUTAGENICITY_PADDED_NODES = 418


class PublishedModel(NamedTuple):
    """What is known of one published file.

    Attributes:
        checksum: SHA-256 of the file.
        task: ``"node"`` or ``"graph"``.
        in_channels: Number of node features.
        num_classes: Number of classes.
        stored: Accuracy on train, val and test that its authors stored beside it.
    """

    checksum: str
    task: str
    in_channels: int
    num_classes: int
    stored: tuple[float, float, float]


class PublishedAccuracy(NamedTuple):
    """The accuracy of one published GNN: what its authors stored, and what its weights give here.

    Attributes:
        name: The dataset.
        variant: ``"gnn"`` or ``"pg"``.
        stored: Accuracy on each split, as stored.
        recomputed: Right answers on each split, counted here.
    """

    name: str
    variant: str
    stored: dict[str, float]
    recomputed: dict[str, Accuracy]


PUBLISHED: dict[tuple[str, str], PublishedModel] = {
    ("gnn", "ba-shapes"): PublishedModel(
        "0ecae1d1ff476009a9f86d342233d12477e500dc7ec501bcef9cf66dffc8c74d",
        "node", 10, 4, (0.969643, 1.0, 1.0),
    ),
    ("gnn", "ba-community"): PublishedModel(
        "7d93836db0ababc5a0ef13413081265df170e5897bf501f8e4191e5521650eee",
        "node", 10, 8, (0.901786, 0.757143, 0.721429),
    ),
    ("gnn", "tree-cycles"): PublishedModel(
        "bf6d1aaa070ecfe26868c5c373f67585b45030001771992c894d312bd905e891",
        "node", 10, 2, (0.942529, 0.977011, 0.943182),
    ),
    ("gnn", "tree-grid"): PublishedModel(
        "da734a4f814bd485b54ff32a7ec4ccac34cd9c9bfca95e5ac1c432ff4cb23841",
        "node", 10, 2, (0.963415, 0.991870, 0.991935),
    ),
    ("gnn", "ba-2motifs"): PublishedModel(
        "46adc9222daa340513faa18c79aa7ff45fddbfad5f4ebef57bc0cd596b8b1e4d",
        "graph", 10, 2, (1.0, 1.0, 0.99),
    ),
    ("gnn", "mutagenicity"): PublishedModel(
        "8160cbdae2adaa1b9a5f4240ee715ba44f6a8069a18e97bbd360fac1f2463009",
        "graph", 14, 2, (0.820409, 0.824885, 0.813364),
    ),
    ("pg", "ba-shapes"): PublishedModel(
        "97611a413afdf1db5fa3517537b006819980f88bbc98a1bffec1f80ae2efd727",
        "node", 10, 4, (0.983929, 0.985714, 1.0),
    ),
    ("pg", "ba-community"): PublishedModel(
        "5db031261d0de821d83f8f4fc52310758e78e6ef77a97deeed8f28b5545ae6ef",
        "node", 10, 8, (0.936607, 0.742857, 0.714286),
    ),
    ("pg", "tree-cycles"): PublishedModel(
        "a4d2ad29d56b34ca240461a128e4124cb78821318a651ca97b693a91835c2e42",
        "node", 10, 2, (0.959770, 0.988506, 0.965909),
    ),
    ("pg", "tree-grid"): PublishedModel(
        "3d360ebfabc0e9c94b262fd66374b7d839e41a28d6bc66e568571cc678e95281",
        "node", 10, 2, (0.956301, 0.983740, 0.991935),
    ),
    ("pg", "ba-2motifs"): PublishedModel(
        "46adc9222daa340513faa18c79aa7ff45fddbfad5f4ebef57bc0cd596b8b1e4d",
        "graph", 10, 2, (1.0, 1.0, 0.99),
    ),
    ("pg", "mutagenicity"): PublishedModel(
        "8160cbdae2adaa1b9a5f4240ee715ba44f6a8069a18e97bbd360fac1f2463009",
        "graph", 14, 2, (0.820409, 0.824885, 0.813364),
    ),
}  # fmt: skip
PUBLISHED_DATASETS: tuple[str, ...] = tuple(name for variant, name in PUBLISHED if variant == "gnn")


def load_published(
    name: str, reference: str | os.PathLike[str] | None = None, *, variant: str = "gnn"
) -> NodeNetwork | GraphNetwork:
    """Returns a published GNN in eval mode, its file verified.

    The Mutagenicity GNN comes with its padding to 418 nodes, in closed form: pass it plain molecules.

    Args:
        name: Dataset it was trained on, as ``"tree-cycles"``.
        reference: Folder that holds ``weights/``; by default the reference folder of the datasets.
        variant: ``"gnn"``, the ones the paper explains, or ``"pg"``, those of the PGExplainer replication. The
            node GNNs of the latter use batch normalisation, and reach their stored accuracy with the
            statistics of the whole graph (``model.train()``), not with those in the file.
    """
    known = PUBLISHED[one_of("variant", variant, VARIANTS), one_of("name", name, PUBLISHED_DATASETS)]
    file = f"{variant}_{name}".replace("-", "_") + ".safetensors"
    advice = (
        "Set GFLOWEXPLAINER_DATA (or 'reference') to a folder with the published files in 'weights/', or train "
        f"a GNN of the same shape: python -m gflowbench.models train --dataset {name} --out FILE."
    )
    folder = reference_folder() if reference is None else Path(reference)
    if folder is None:
        raise DatasetError(f"There is no reference folder to read the published weights '{file}' from. {advice}")
    path = folder / "weights" / file
    if not path.is_file():
        raise DatasetError(f"The published weights '{path}' are missing. {advice}")
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != known.checksum:
        raise DatasetError(
            f"The file '{path}' is damaged, or not the published one: its SHA-256 is {checksum}, not "
            f"{known.checksum}. {advice}"
        )
    architecture = Architecture(
        model="gcn",
        task=known.task,
        in_channels=known.in_channels,
        num_classes=known.num_classes,
        normalization="batch" if (variant, known.task) == ("pg", "node") else "l2",
        padded_nodes=MUTAGENICITY_PADDED_NODES if name == "mutagenicity" else None,
    )
    try:
        tensors, _ = read_safetensors(path)
    except CheckpointError as error:
        raise DatasetError(f"{error} {advice}") from error
    return fill(architecture, tensors, path)


def published_accuracies(
    name: str, reference: str | os.PathLike[str] | None = None, *, variant: str = "gnn"
) -> PublishedAccuracy:
    """Recomputes the accuracy of a published GNN on the published data, beside the stored one.

    Args:
        name: The dataset.
        reference: The reference folder; found as for :func:`load_published`.
        variant: ``"gnn"`` or ``"pg"``; a GNN with batch normalisation is run as it was scored, with the
            statistics of the whole graph.
    """
    model = load_published(name, reference, variant=variant)
    benchmark = load(name, source="published", root=None if reference is None else Path(reference))
    model.train(model.architecture.normalization == "batch")
    return PublishedAccuracy(
        name=name,
        variant=variant,
        stored=dict(zip(SPLITS, PUBLISHED[variant, name].stored, strict=True)),
        recomputed=accuracies(model, benchmark),
    )
