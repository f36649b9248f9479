"""Features as kinds of nodes, beside what scikit-learn makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import OneHotEncoder

from gflowexplainer.evidence.kinds import find_categories, has_few_kinds, one_hot
from gflowexplainer.steering import MAX_KINDS


def atoms(number: int = 200, seed: int = 0) -> torch.Tensor:
    """Features as of molecules: an element's number, charge, hydrogens, an aromatic flag and a mass."""
    rng = np.random.default_rng(seed)
    element = rng.choice([6, 7, 8, 16, 17], number)
    columns = [element, rng.choice([4, 5, 6], number), rng.integers(0, 4, number), rng.integers(0, 2, number)]
    return torch.tensor(np.stack([*columns, element * 2.0125 + rng.random(number)], axis=1), dtype=torch.float)


def test_whole_numbers_become_the_indicators_that_scikit_learn_makes():
    x = atoms()
    names = find_categories(x)
    assert names[:, 0].tolist() == [0] * 5 + [1] * 3 + [2] * 4
    wanted = OneHotEncoder(sparse_output=False).fit_transform(x[:, :3].numpy())
    np.testing.assert_array_equal(one_hot(x, names), np.concatenate([x[:, 3:].double(), wanted], axis=1))


def test_what_is_no_name_stays_as_it_is():
    x = torch.tensor([[0.0, 1.5, 1, 0], [1, 2, 900, 3], [0, 3, 5, 3], [1, 4, 7, 0]])  # two values, halves, far apart
    assert find_categories(x).shape == (0, 2)
    assert one_hot(x, find_categories(x)) is x
    many = torch.arange(MAX_KINDS + 1.0)[:, None]
    assert not find_categories(many).numel()
    assert find_categories(many[:-1]).shape == (MAX_KINDS, 2)
    assert find_categories(torch.zeros(0, 3)).shape == (0, 2)
    assert find_categories(x.to_sparse()).shape == (0, 2)


def test_a_value_that_was_never_seen_is_of_no_kind():
    names = find_categories(torch.tensor([[6.0], [7.0], [8.0]]))
    assert one_hot(torch.tensor([[7.0], [9.0]]), names).tolist() == [[0, 1, 0], [0, 0, 0]]


def test_whole_numbers_of_any_type_are_names():
    x = torch.tensor([[6, 0], [7, 1], [8, 0]])
    assert torch.equal(find_categories(x), find_categories(x.float()))
    assert one_hot(x, find_categories(x)).dtype == torch.double


def of_few_kinds(x: torch.Tensor) -> bool:
    return has_few_kinds(x, find_categories(x))


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0])
def test_nodes_are_of_few_kinds_where_the_components_of_scikit_learn_say_so(spread: float):
    generator = torch.Generator().manual_seed(1)
    kinds = torch.randn(5, 40, generator=generator)[torch.randint(5, (300,), generator=generator)]
    x = kinds + spread * torch.randn(300, 40, generator=generator)
    held = PCA(MAX_KINDS, svd_solver="full").fit(x.double().numpy()).explained_variance_ratio_.sum()
    assert of_few_kinds(x) == (held >= 0.9)
    assert of_few_kinds(x) == (spread < 1)


def test_few_columns_are_few_kinds_and_words_are_not():
    words = torch.randn(100, 300, generator=torch.Generator().manual_seed(0))
    assert of_few_kinds(words[:, :MAX_KINDS])
    assert not of_few_kinds(words)
    assert not of_few_kinds(words.to_sparse())
    assert not of_few_kinds(torch.randn(50, 2000, generator=torch.Generator().manual_seed(0))[:, :1].repeat(1, 2000))
    assert of_few_kinds(torch.ones(200, 50))  # nothing tells nodes apart
    assert not of_few_kinds(words[:9, :20])  # nine nodes lie in eight directions, whatever they are


def test_elements_by_number_and_by_indicators_tell_the_same_nodes_apart():
    x = atoms()[:, :1]
    wanted = torch.nn.functional.one_hot(torch.unique(x, return_inverse=True)[1].flatten()).double()
    assert torch.equal(one_hot(x, find_categories(x)), wanted)
