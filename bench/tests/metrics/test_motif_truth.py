import torch

from gflowbench.explainers import Subject
from gflowbench.metrics import GroundTruth


def ends(instances, mask):
    pairs = instances.node_id[instances.edge_index[:, mask]].t().tolist()
    return {tuple(sorted(pair)) for pair in pairs}


def test_own_is_the_motif_of_the_explained_node_and_all_is_every_motif(two_triangles, count_neighbors):
    subject = Subject.of(count_neighbors, two_triangles, num_hops=4)
    truth = GroundTruth.of(two_triangles, subject)
    first = subject.instances.owner[subject.instances.edge_index[0]] == 0
    mine, other = {(0, 1), (0, 2), (1, 2)}, {(4, 5), (4, 6), (5, 6)}
    assert ends(subject.instances, truth.own & first) == mine
    assert ends(subject.instances, truth.all & first) == mine | other
    assert ends(subject.instances, truth.own & ~first) == set()  # node 3 lies in no motif
    assert ends(subject.instances, truth.all & ~first) == mine | other
    assert subject.instances.node_id[truth.node].tolist() == [0, 1, 2]


def test_graphs_have_one_truth_in_their_own_order(molecules, mean_degree):
    subject = Subject.of(mean_degree, molecules, [1, 0])
    truth = GroundTruth.of(molecules, subject)
    assert torch.equal(truth.own, truth.all)
    assert truth.node.tolist() == [False, True, True, True, True, True, True, False, False]
    assert int(truth.own.sum()) == 12


def test_without_motifs_there_is_no_truth(molecules, mean_degree):
    subject = Subject.of(mean_degree, molecules)
    del molecules.graphs[0].edge_motif
    assert GroundTruth.of(molecules, subject) is None
