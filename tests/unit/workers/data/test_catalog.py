"""The data that need no file, and the shape that the model takes."""

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from backend.errors import InvalidInput
from backend.runs.request.spec import DataSpec
from workers.data import catalog


def test_digits_are_split_the_same_way_every_time(zoo) -> None:
    one, two = (catalog.load(DataSpec("digits"), zoo("mlp")) for _ in range(2))
    assert one.train.all_inputs.shape == (1437, 1, 8, 8)
    assert one.held_out.all_inputs.shape == (360, 1, 8, 8)
    assert torch.equal(one.train.all_inputs, two.train.all_inputs)
    seen = one.train.all_inputs
    assert (float(seen.min()), float(seen.max())) == (0.0, 1.0)
    counts = torch.bincount(one.held_out.all_targets)
    assert len(counts) == 10
    assert int(counts.max() - counts.min()) <= 3


def test_digits_are_those_of_scikit_learn_split_as_it_splits_them(zoo) -> None:
    found = catalog.load(DataSpec("digits"), zoo("mlp"))
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    for split, inputs, targets in zip(
        (found.train, found.held_out), parts[:2], parts[2:], strict=True
    ):
        expected = torch.tensor(inputs, dtype=torch.float32).view(-1, 1, 8, 8) / 16
        assert torch.equal(split.all_inputs, expected)
        assert torch.equal(split.all_targets, torch.tensor(targets))


def test_synthetic_is_as_large_as_asked_and_leaves_the_generator_alone(zoo) -> None:
    state = torch.get_rng_state()
    one, two = (catalog.load(DataSpec("synthetic", 40), zoo("mlp")) for _ in range(2))
    assert (one.num_train, one.num_held_out) == (40, 10)
    assert torch.equal(one.train.all_inputs, two.train.all_inputs)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_definitions_own_default(zoo) -> None:
    assert catalog.load(DataSpec(), zoo("mlp")).train.all_inputs.shape == (1437, 1, 8, 8)
    assert catalog.load(DataSpec(), zoo("gpt_tiny")).train.all_inputs.shape[1:] == (64,)


def test_an_unknown_name_lists_those_there_are(zoo) -> None:
    with pytest.raises(InvalidInput, match="no data set 'imagenet'") as raised:
        catalog.load(DataSpec("imagenet"), zoo("mlp"))
    assert "definition, digits" in raised.value.advice


def test_an_example_comes_from_the_data_where_there_is_no_other(define) -> None:
    definition = define('DATA = "digits"\ndef model(): return nn.Flatten()')
    inputs, targets = catalog.example(definition, 3)
    assert inputs.shape == (3, 1, 8, 8)
    assert len(targets) == 3


def test_the_first_samples_begin_again_where_there_are_too_few(zoo) -> None:
    found = catalog.load(DataSpec("synthetic", 3), zoo("mlp"))
    inputs, _ = found.first(5)
    assert torch.equal(inputs[3:], inputs[:2])
