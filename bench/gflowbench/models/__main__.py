"""``python -m gflowbench.models``: trains GNNs, and prints the accuracy of the published ones."""

import argparse
import statistics
import sys
from collections.abc import Sequence

from gflowbench.datasets import NAMES, load
from gflowbench.models.architecture import MODELS
from gflowbench.models.gnn_training import TrainedModel, train
from gflowbench.models.model_accuracy import SPLITS
from gflowbench.models.published import PUBLISHED_DATASETS, VARIANTS, published_accuracies
from gflowexplainer.errors import ConfigError, GFlowExplainerError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0, or 2 after a mistake, which is said in one line."""
    options = _parser().parse_args(arguments)
    try:
        _train(options) if options.command == "train" else _accuracy(options)
    except GFlowExplainerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gflowbench.models", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    training = commands.add_parser("train", help="train a GNN and write its weights")
    training.add_argument("--dataset", required=True, choices=NAMES)
    training.add_argument("--source", default="auto", help="auto, generated, published or downloaded")
    training.add_argument("--model", default="gcn", choices=MODELS)
    training.add_argument(
        "--seed", type=int, nargs="+", default=[0], help="of the GNN, and of the data where it is generated"
    )
    training.add_argument("--data-seed", type=int, help="of the data, if it is not to be that of the GNN")
    training.add_argument("--device", default="cpu")
    training.add_argument("--epochs", type=int, help="at most; by default as the recipe says")
    training.add_argument("--out", help="safetensors file; with several seeds '{seed}' stands for each")
    training.add_argument("--quiet", action="store_true", help="no progress bar")

    accuracy = commands.add_parser("accuracy", help="recompute the accuracy of the published GNNs")
    accuracy.add_argument("--dataset", nargs="+", default=PUBLISHED_DATASETS, choices=PUBLISHED_DATASETS)
    accuracy.add_argument("--variant", default="gnn", choices=VARIANTS)
    return parser


def _train(options: argparse.Namespace) -> None:
    """Trains one GNN for each seed, and prints a line for each and one for all."""
    if options.out and len(options.seed) > 1 and "{seed}" not in options.out:
        raise ConfigError(f"'--out' needs '{{seed}}' in it to tell several seeds apart (got '{options.out}').")
    changes = {} if options.epochs is None else {"max_epochs": options.epochs}
    results: list[TrainedModel] = []
    for seed in options.seed:
        data_seed = seed if options.data_seed is None else options.data_seed
        benchmark = load(options.dataset, source=options.source, seed=data_seed)
        result = train(
            options.model, benchmark, seed=seed, device=options.device, progress=not options.quiet, **changes
        )
        results.append(result)
        shares = "  ".join(f"{name} {result.accuracies[name]}" for name in SPLITS)
        print(
            f"{options.dataset} ({benchmark.source}) {options.model} seed {seed}: {shares}  "
            f"[epoch {result.best_epoch + 1} of {len(result.curves['loss'])}, {result.seconds:.1f} s]",
            flush=True,
        )
        if options.out:
            print(f"written to {result.save(options.out.replace('{seed}', str(seed)))}", flush=True)
    if len(results) > 1:
        columns = {name: [result.accuracies[name].share for result in results] for name in SPLITS}
        spread = "  ".join(
            f"{name} {statistics.mean(column):.3f} ± {statistics.stdev(column):.3f}" for name, column in columns.items()
        )
        print(f"{options.dataset} {options.model}, mean and standard deviation: {spread}")


def _accuracy(options: argparse.Namespace) -> None:
    """Prints one row a published GNN: each split recomputed, with the stored value behind it."""
    print(f"{'GNN':<20}" + "".join(f"{f'{name}: recomputed | stored':<34}" for name in SPLITS))
    for name in options.dataset:
        row = published_accuracies(name, variant=options.variant)
        cells = (f"{row.recomputed[split]!s} | {row.stored[split]:.6f}" for split in SPLITS)
        print(f"{row.variant + ' ' + name:<20}" + "".join(f"{cell:<34}" for cell in cells), flush=True)


if __name__ == "__main__":
    sys.exit(main())
