"""From a task to explanations: in batches that fit into memory, by a fitted network or one of each instance's own.

Each batch is sampled, or searched, and what it shows is estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch_geometric.explain import ModelConfig
from tqdm.auto import tqdm

from gflowexplainer.choices import Inference, Weighting
from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.inference.cpu_estimates import CpuEstimates
from gflowexplainer.inference.estimates import (
    effective_sizes,
    estimate_from_policy,
    estimate_from_samples,
    reward_weights,
)
from gflowexplainer.inference.explanations import SampledExplanations
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.inference.search import search
from gflowexplainer.model.requests import AnyTask
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import repeated
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.reference_nodes import ReferenceNodes
from gflowexplainer.sampler import FlowSampler
from gflowexplainer.settings import Settings
from gflowexplainer.training.trainer import Trainer, learning

_ROLLOUTS_AT_ONCE = 4096
"""Rollouts beyond which a CPU gains nothing by a larger batch."""


@dataclass(frozen=True)
class Explaining:
    """How the predictions of a task are explained.

    Attributes:
        settings: All settings of a fit.
        settings_alone: Those of the short training on one instance that replaces a missing fit.
        fitted: What was learned by a fit; ``None`` if there was none.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"`` or ``"reward"``.
        inference: ``"flow"`` or ``"search"``.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        budget: Bytes that one batch of work may take, roughly.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """

    settings: Settings
    settings_alone: Settings
    fitted: FittedState | None
    num_samples: int
    weighting: str
    inference: str
    certificate_limit: int
    budget: int
    model_name: str
    config: ModelConfig

    def explain(self, task: AnyTask, *, progress: bool) -> list[SampledExplanations]:
        """Explains all predictions of a task, one batch behind the other in its order."""
        at_once, on_gpu = 1, task.index.is_cuda
        if self.fitted is not None:
            # A GPU is idle in small batches.
            at_once = len(task) if on_gpu else max(1, _ROLLOUTS_AT_ONCE // self.num_samples)
        batches: list[SampledExplanations] = []
        reference = ReferenceNodes(task, self.settings)
        begins = range(0, len(task), at_once)
        silent = not progress or self.fitted is not None
        for begin in begins if silent else tqdm(begins, desc="explain", leave=False):
            batch = task.inputs(slice(begin, begin + at_once))
            largest = min(self.settings.max_nodes, batch.instances.largest)
            # A trained network stops early and comes to the same states again. A GPU says when it was too much.
            states = self.num_samples * (1 if on_gpu else largest)
            for inputs in batch.split(states, self.budget):
                batches += self._sample(inputs, reference)
        return batches

    def _sample(self, inputs: TaskInputs, reference: ReferenceNodes) -> list[SampledExplanations]:
        """Samples explanations of instances together, or one half after the other where a GPU has no room."""
        try:
            with learning():
                sampler = self._sampler(inputs, reference)
            found = explain_instances(
                sampler,
                num_samples=self.num_samples,
                weighting=self.weighting,
                certificate_limit=self.certificate_limit,
                model_name=self.model_name,
                config=self.config,
                inference=self.inference,
            )
        except torch.cuda.OutOfMemoryError:
            if len(inputs) == 1:
                raise
        else:
            return [found]
        torch.cuda.empty_cache()
        return [part for half in inputs.halves() for part in self._sample(half, reference)]

    def _sampler(self, inputs: TaskInputs, reference: ReferenceNodes) -> FlowSampler:
        """Returns a trained sampler of instances: the fitted one, or one of their own."""
        if self.fitted is None:
            sampler = FlowSampler(self.settings_alone, inputs, consensus=reference.consensus(inputs))
            if self.inference == Inference.flow:
                Trainer(sampler).run(progress=False)
            return sampler
        try:
            return self.fitted.sampler_of(self.settings, inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except (ConfigError, RuntimeError) as error:
            raise InstanceError(
                f"The fitted flow network does not fit these graphs; their features must be those of the training: "
                f"{error}"
            ) from error


@torch.no_grad()
def explain_instances(
    sampler: FlowSampler,
    *,
    num_samples: int,
    weighting: str,
    certificate_limit: int,
    model_name: str,
    config: ModelConfig | None = None,
    inference: str = Inference.flow,
) -> SampledExplanations:
    """Samples the instances of a trained sampler and estimates what explanations show.

    Args:
        sampler: The trained sampler.
        num_samples: Subgraphs sampled for each explanation.
        weighting: ``"policy"`` or ``"reward"``; see :mod:`~gflowexplainer.inference.estimates`.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
        inference: ``"flow"``, or ``"search"``: subgraphs come from a beam as wide as there would be samples.
    """
    instances = sampler.instances
    if inference == Inference.search:
        settings = sampler.settings
        found, log_weight = search(
            instances, sampler.reward, settings.max_nodes, num_samples, settings.measure, settings.seed
        )
        return SampledExplanations(
            sampler,
            estimate_from_samples(instances, found, log_weight),
            partial(torch.full, (len(instances),), math.nan),
            num_samples,
            Weighting.reward,
            certificate_limit,
            model_name,
            config,
            Inference.search,
        )
    every = repeated(len(instances), num_samples, instances.device)
    record = sampler.record(every, Stream.explaining, evenly=True) if weighting == Weighting.policy else None
    if record is not None:
        counted = CpuEstimates(record)
        estimates, effective = counted.estimates(), counted.find_effective_sizes(sampler.reward)
    else:
        rollouts = sampler.sample(every, Stream.explaining, evenly=True)
        samples, log_weight = rollouts.subgraphs, reward_weights(rollouts, sampler.reward, sampler.settings)
        effective = partial(effective_sizes, instances, samples, log_weight)
        if weighting == Weighting.reward:
            estimates = estimate_from_samples(instances, samples, log_weight)
        else:
            estimates = estimate_from_policy(rollouts)
    return SampledExplanations(
        sampler, estimates, effective, num_samples, weighting, certificate_limit, model_name, config
    )
