"""What a model loses without a node: an instance's own evidence."""

from __future__ import annotations

import torch
from torch import Tensor

from gflowexplainer.graphs.instances import Instances
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.target import Target
from gflowexplainer.ops.segments import pointers, ranges, segment_ids

MOST = 1000
"""Times that the model is asked about one instance, at most."""


@torch.no_grad()
def losses(predictor: Predictor, instances: Instances, target: Target) -> Tensor:
    """Returns how much the strength of the target falls where each node is gone, shape ``[n, 1]``.

    In an instance of more than :data:`MOST` nodes, some that stand beside each other in the list go together.

    Args:
        predictor: The explained model.
        instances: The instances.
        target: What is held.
    """
    counts, owner = instances.node_counts, instances.owner
    questions = counts.clamp(max=MOST)
    place = torch.arange(instances.num_nodes, device=instances.device) - instances.ptr[owner]
    # The question in which a node is missing.
    missing = pointers(questions)[owner] + place * questions[owner] // counts[owner]
    instance, answers = segment_ids(questions), []
    with predictor.evaluating():
        for part in predictor.chunks(predictor.cost(instances)[instance]):
            asked = instance[part]
            question, node = ranges(instances.ptr[asked], counts[asked])
            kept = missing[node] != question + part.start
            answers.append(target.strength(predictor.predict(instances, asked, kept), asked))
        whole = predictor.whole(instances)
    whole = target.strength(whole, torch.arange(len(instances), device=instances.device))
    return (whole[owner] - torch.cat(answers)[missing])[:, None]
