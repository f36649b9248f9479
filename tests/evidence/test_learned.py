"""What is learned, on models whose truth is known, and stored."""

import pytest
import torch
from torch import Tensor, nn

from gflowexplainer.errors import CheckpointError, ConfigError
from gflowexplainer.evidence.learned import Learned, learn, total_evidence
from gflowexplainer.graphs.instances import Instances
from gflowexplainer.graphs.subgraphs import Subgraphs
from gflowexplainer.model.predictor import Predictor
from gflowexplainer.model.task_inputs import TaskInputs
from gflowexplainer.testing import house, random_graph


class Colours(nn.Module):
    """Two classes; their log-odds add up what each node of the first two colours says."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        batch = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
        said = 2 * x[:, 0] - x[:, 1]
        value = torch.zeros(int(batch.max()) + 1).index_add(0, batch, said)
        return torch.stack([-value, value], dim=1)


def coloured(number=8, seed=0):
    graphs = []
    for one in range(number):
        graph = random_graph(10, 0.2, seed=seed + one)
        generator = torch.Generator().manual_seed(seed + one)
        graph.x = nn.functional.one_hot(torch.randint(3, (10,), generator=generator), 3).float()
        graphs.append(graph)
    return graphs


def inputs_of(graphs, embedding=None):
    predictor = Predictor(Colours(), level="graph", num_hops=1)
    return TaskInputs.of(predictor, Instances.of_graphs(graphs), embedding=embedding)


def embedded(graphs, width=2):
    return inputs_of(graphs, torch.cat([graph.x for graph in graphs])[:, :width] + 0.5)


def test_nodes_are_ranked_by_what_they_say_for_the_class():
    inputs = inputs_of(coloured(200))
    learned = learn(inputs, 0)
    assert learned.explained > 0.7
    evidence, instances = learned.evidence(inputs), inputs.instances
    for number, label in enumerate(inputs.target.label.tolist()):
        mine = instances.owner == number
        colour, found = instances.x[mine].argmax(dim=1), evidence.node[mine]
        means = [float(found[colour == c].mean()) for c in range(3) if (colour == c).any()]
        said = [s for c, s in enumerate((2, -1, 0)) if (colour == c).any()]
        order = sorted(range(len(said)), key=lambda i: said[i] * (1 if label == 1 else -1))
        assert sorted(range(len(means)), key=means.__getitem__) == order


def test_what_was_learned_survives_a_file():
    graphs = coloured()
    inputs = embedded(graphs)
    learned = learn(inputs, 0)
    assert [tuple(one.kinds.basis.shape) for one in learned.shared] == [(3, 3), (2, 2)]  # features, embeddings
    tensors = learned.tensors()
    again = Learned.from_tensors(dict(sorted(tensors.items())))
    for name, tensor in again.tensors().items():
        assert torch.equal(tensor, tensors[name]), name
    assert (again.removal, again.explained, again.added_up) == (learned.removal, learned.explained, learned.added_up)
    one, other = learned.evidence(inputs), again.evidence(inputs)
    for name in ("node", "edge", "counted", "spreads", "lost"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("name", ["weight_0", "usual", "numbers", "basis_0"])
def test_tensors_that_are_missing_are_noticed(name):
    tensors = learn(inputs_of(coloured(2)), 0).tensors()
    del tensors[name]
    with pytest.raises(CheckpointError, match="no evidence"):
        Learned.from_tensors(tensors)


def test_evidence_of_other_features_is_refused():
    graphs = coloured(4)
    learned = learn(embedded(graphs), 0)
    with pytest.raises(ConfigError, match="another model or other features"):
        learned.evidence(embedded(graphs, width=3))
    with pytest.raises(ConfigError, match="another model or other features"):
        learned.evidence(inputs_of(graphs))


def test_the_same_seed_learns_the_same_and_single_instances_see_the_same():
    inputs = inputs_of(coloured())
    one, two, other = (learn(inputs, seed) for seed in (0, 0, 1))
    assert torch.equal(one.shared[0].weight, two.shared[0].weight)
    assert not torch.equal(one.shared[0].weight, other.shared[0].weight)
    every, alone = one.evidence(inputs), one.evidence(inputs.select(torch.tensor([3])))
    torch.testing.assert_close(every.node[inputs.instances.owner == 3], alone.node, rtol=1e-5, atol=1e-5)


def test_evidence_inside_is_the_sum_over_nodes_and_edges():
    instances = Instances.of_graphs([house()])
    node = torch.arange(5).double()
    edge = 10.0 * (instances.neighbor_row + instances.neighbor).double()
    subgraphs = Subgraphs(torch.zeros(3, dtype=torch.long), torch.tensor([[0, 1, 4], [2, 3, -1], [2, -1, -1]]))
    # The edges 0-1, 0-4 and 1-4 of the roof, and 2-3; each counts once.
    assert total_evidence(instances, node, edge, subgraphs).tolist() == [5 + 10 + 40 + 50, 5 + 50, 2]
    assert total_evidence(instances, node, None, subgraphs).tolist() == [5, 5, 2]
