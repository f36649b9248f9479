"""What a model is made of, looked at once."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv, RGCNConv

from gflowexplainer.errors import ConfigError, ModelError
from gflowexplainer.model.makeup import Makeup
from gflowexplainer.testing import NodeModel


def test_steps_relations_and_place_are_found():
    assert Makeup.of(NodeModel()) == Makeup(2, 1, torch.device("cpu"))
    assert Makeup.of(nn.Sequential(RGCNConv(3, 3, 4), GCNConv(3, 3), RGCNConv(3, 3, 5))).num_relations == 5
    assert Makeup.of(nn.ReLU()) == Makeup(0, 1, None)


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ModelError, match="has no shape yet"):
        Makeup.of(nn.Sequential(nn.LazyLinear(3)))
    with pytest.raises(ConfigError, match="target_to_source"):
        Makeup.of(nn.Sequential(GCNConv(3, 3, flow="target_to_source")))
