"""Borrows the user's model and hands it back exactly as it came, also when an exception flies."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def borrowed(model: nn.Module) -> Iterator[nn.Module]:
    """Puts ``model`` into evaluation mode without gradients for the length of the block.

    Restored afterwards, whatever happens inside: the training flag of every module, the contents of every
    buffer, and the state of the random number generators of torch, numpy and Python.
    """
    flags = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers()) if tensor.is_cuda}
    with torch.random.fork_rng(devices=list(devices)):
        try:
            model.eval()
            with torch.no_grad():
                yield model
        finally:
            for module, training in flags:
                module.training = training
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            random.setstate(python_state)
            np.random.set_state(numpy_state)
