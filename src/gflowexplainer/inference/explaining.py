"""From a task to explanations: in batches that fit into memory, by what a fit learned or by what is learned at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch_geometric.explain import ModelConfig
from tqdm.auto import tqdm

from gflowexplainer.errors import ConfigError, InstanceError
from gflowexplainer.evidence.reference_nodes import learn_from_references
from gflowexplainer.inference.estimates import disagreement, estimate_from_policy
from gflowexplainer.inference.explanations import SampledExplanations
from gflowexplainer.inference.fitted_state import FittedState
from gflowexplainer.inference.particle_estimates import estimate_from_particles
from gflowexplainer.model.requests import AnyTask
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.ops.segments import repeated
from gflowexplainer.ops.streams import Stream
from gflowexplainer.rewards.evidence_reward import EvidenceReward
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
        fitted: What was learned by a fit; ``None`` if there was none.
        num_samples: Particles of each size, or subgraphs that a flow network samples, for each explanation.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        budget: Bytes that one batch of work may take, roughly.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """

    settings: Settings
    fitted: FittedState | None
    num_samples: int
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
        begins = range(0, len(task), at_once)
        silent = not progress or self.fitted is not None
        for begin in begins if silent else tqdm(begins, desc="explain", leave=False):
            batch = task.inputs(slice(begin, begin + at_once))
            largest = min(self.settings.max_nodes, batch.instances.largest)
            # A trained network stops early and comes to the same states again. A GPU says when it was too much.
            states = self.num_samples * (1 if on_gpu else largest)
            for inputs in batch.split(states, self.budget):
                batches += self._sample(inputs, task)
        return batches

    def _sample(self, inputs: TaskInputs, task: AnyTask) -> list[SampledExplanations]:
        """Samples explanations of instances together, or one half after the other where a GPU has no room."""
        try:
            with learning():
                sampler = self._sampler(inputs, task)
            found = explain_instances(
                sampler,
                num_samples=self.num_samples,
                certificate_limit=self.certificate_limit,
                model_name=self.model_name,
                config=self.config,
            )
        except torch.cuda.OutOfMemoryError:
            if len(inputs) == 1:
                raise
        else:
            return [found]
        torch.cuda.empty_cache()
        return [part for half in inputs.halves() for part in self._sample(half, task)]

    def _sampler(self, inputs: TaskInputs, task: AnyTask) -> FlowSampler:
        """Returns a sampler of instances by what was fitted, or by what is learned for them alone."""
        settings = self.settings
        if self.fitted is None:
            if settings.is_sampled_directly:
                learned = learn_from_references(task, inputs, settings.seed, settings.removal)
                return FlowSampler(settings, inputs, learned=learned)
            sampler = FlowSampler(settings, inputs)
            Trainer(sampler).run(progress=False)
            return sampler
        try:
            return self.fitted.sampler_of(settings, inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except (ConfigError, RuntimeError) as error:
            raise InstanceError(
                f"What was fitted does not fit these graphs; their features must be those of the fit: {error}"
            ) from error


@torch.no_grad()
def explain_instances(
    sampler: FlowSampler,
    *,
    num_samples: int,
    certificate_limit: int,
    model_name: str,
    config: ModelConfig | None = None,
) -> SampledExplanations:
    """Samples the instances of a sampler and estimates what explanations show.

    Args:
        sampler: The sampler; its network is trained, where its reward needs one.
        num_samples: Particles of each size, or subgraphs that the network samples, for each explanation.
        certificate_limit: Connected subgraphs up to which a certificate is computed when it is asked for.
        model_name: Fingerprint of the explained model.
        config: Mode, level and return type of the model.
    """
    if isinstance(sampler.reward, EvidenceReward):
        estimates, error = estimate_from_particles(sampler.reward, sampler.settings, num_samples)
    else:
        every = repeated(len(sampler.instances), num_samples, sampler.instances.device)
        rollouts = sampler.sample(every, Stream.explaining, evenly=True)
        estimates, error = estimate_from_policy(rollouts), disagreement(rollouts, sampler.reward, sampler.settings)
    return SampledExplanations(sampler, estimates, error, num_samples, certificate_limit, model_name, config)
