"""From a task to explanations: in batches that fit into memory, by what a fit learned or by what is learned at once."""

from __future__ import annotations

import torch
from tqdm.auto import tqdm

from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.evidence.reference_nodes import learn_from_references
from gflowexplainer.inference.estimates import disagreement, estimate_from_policy
from gflowexplainer.inference.options import ExplainOptions
from gflowexplainer.inference.particle_estimates import estimate_from_particles
from gflowexplainer.inference.sampled import SampledExplanations
from gflowexplainer.model.task import Task
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.hashed_random import Stream
from gflowexplainer.rewards.evidence_reward import EvidenceReward
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.training.trainer import Trainer, learning

_ROLLOUTS_AT_ONCE = 4096
"""Rollouts beyond which a CPU gains nothing by a larger batch."""


def explain_task(task: Task, options: ExplainOptions, *, progress: bool) -> list[SampledExplanations]:
    """Explains all predictions of a task, one batch behind the other in its order."""
    at_once, on_gpu = 1, task.index.is_cuda
    if options.fitted is not None:
        # A GPU is idle in small batches.
        at_once = len(task) if on_gpu else max(1, _ROLLOUTS_AT_ONCE // options.num_samples)
    batches: list[SampledExplanations] = []
    begins = range(0, len(task), at_once)
    silent = not progress or options.fitted is not None
    for begin in begins if silent else tqdm(begins, desc="explain", leave=False):
        batch = task.inputs(slice(begin, begin + at_once))
        largest = min(options.settings.max_nodes, batch.instances.largest)
        # A trained network stops early and comes to the same states again. A GPU says when it was too much.
        states = options.num_samples * (1 if on_gpu else largest)
        for inputs in batch.split(states, options.budget):
            batches += _sample(inputs, task, options)
    return batches


def _sample(inputs: TaskInputs, task: Task, options: ExplainOptions) -> list[SampledExplanations]:
    """Samples explanations of instances together, or one half after the other where a GPU has no room."""
    try:
        with learning():
            sampler = _sampler(inputs, task, options)
        found = explain_instances(sampler, options)
    except torch.cuda.OutOfMemoryError:
        if len(inputs) == 1:
            raise
    else:
        return [found]
    torch.cuda.empty_cache()
    return [part for half in inputs.halves() for part in _sample(half, task, options)]


def _sampler(inputs: TaskInputs, task: Task, options: ExplainOptions) -> FlowSampler:
    """Returns a sampler of instances by what was fitted, or by what is learned for them alone."""
    settings = options.settings
    if options.fitted is None:
        if settings.is_sampled_directly:
            learned = learn_from_references(task, inputs, settings.seed, settings.removal)
            return FlowSampler(settings, inputs, learned=learned)
        sampler = FlowSampler(settings, inputs)
        Trainer(sampler).run(progress=False)
        return sampler
    try:
        return options.fitted.sampler_of(settings, inputs)
    except torch.cuda.OutOfMemoryError:
        raise
    except (ConfigError, RuntimeError) as error:
        raise InstanceError(
            f"What was fitted does not fit these graphs; their features must be those of the fit: {error}"
        ) from error


@torch.no_grad()
def explain_instances(sampler: FlowSampler, options: ExplainOptions) -> SampledExplanations:
    """Samples the instances of a sampler, whose network is trained where its reward needs one."""
    if isinstance(sampler.reward, EvidenceReward):
        estimates, error = estimate_from_particles(sampler.reward, sampler.settings, options.num_samples)
    else:
        instances = sampler.instances
        every = torch.arange(len(instances), device=instances.device).repeat_interleave(options.num_samples)
        rollouts = sampler.sample(every, Stream.explaining, evenly=True)
        estimates, error = estimate_from_policy(rollouts), disagreement(rollouts, sampler.reward, sampler.settings)
    return SampledExplanations(sampler, estimates, error, options)
