"""Gradient descent on a GNN with the weights of its best epoch kept: the one training loop of every GNN here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm


@dataclass(frozen=True)
class Descent:
    """How long and how fast a GNN is trained.

    Attributes:
        epochs: Passes over the training instances at most.
        learning_rate: Of Adam at the start; it falls to zero along a cosine.
        weight_decay: Of Adam.
        clip_norm: Largest norm of a gradient.
        patience: Epochs without a better one after which training ends; ``None`` for no such end.
        good_enough: Validation loss below which training ends.
    """

    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    clip_norm: float = 2.0
    patience: int | None = None
    good_enough: float = float("-inf")


def descend(
    model: nn.Module,
    how: Descent,
    losses: Callable[[int], Iterable[tuple[Tensor, int]]],
    validate: Callable[[], tuple[float, float]],
    *,
    title: str | None = None,
) -> tuple[dict[str, list[float]], int]:
    """Trains a model in place and gives it the weights of its best epoch.

    Args:
        model: The model; it is in training mode while ``losses`` are taken, and in evaluation mode for ``validate``.
        how: How long and how fast.
        losses: Yields the mean loss of each batch of an epoch, and the instances in it.
        validate: Returns accuracy and loss; the best epoch has the highest accuracy, among equals the lowest loss.
        title: What the progress bar says; no bar if not given.

    Returns:
        For each epoch ``loss``, ``val_loss`` and ``val_accuracy``; and the best epoch.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, how.epochs)
    curves: dict[str, list[float]] = {"loss": [], "val_loss": [], "val_accuracy": []}
    best, best_epoch, best_weights = (-1.0, 0.0), -1, copy.deepcopy(model.state_dict())
    with tqdm(total=how.epochs, desc=title, disable=title is None, leave=False) as bar:
        for epoch in range(how.epochs):
            model.train()
            total, seen = 0.0, 0
            for loss, count in losses(epoch):
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), how.clip_norm)
                optimizer.step()
                total, seen = total + loss.item() * count, seen + count
            schedule.step()
            model.eval()
            with torch.no_grad():
                accuracy, loss_there = validate()
            for name, value in zip(curves, (total / seen, loss_there, accuracy), strict=True):
                curves[name].append(value)
            if (accuracy, -loss_there) > best:
                best, best_epoch, best_weights = (accuracy, -loss_there), epoch, copy.deepcopy(model.state_dict())
            bar.set_postfix(loss=f"{curves['loss'][-1]:.3f}", val=f"{accuracy:.3f}", refresh=False)
            bar.update()
            if loss_there < how.good_enough or (how.patience is not None and epoch - best_epoch >= how.patience):
                break
    model.load_state_dict(best_weights)
    return curves, best_epoch
