"""Contract of every local head: scores as the model has them, a loss that all of its weights and
the stage learn from, equal values of equal seeds."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.local_heads import LINEAR, LOCAL_HEADS, LOW_RANK, SIMILARITY
from backend.runs.request.spec import TrainSpec
from workers.definitions.definition import cross_entropy
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.local_heads.catalog import HEADS
from workers.runtime.compute.local_heads.features import MOST_POOLED, Features, pooled
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.local_heads.similarity import similarity

CPU, SAMPLES, TOKENS, SCORES = torch.device("cpu"), 6, 3, 5
BUNDLES = {
    "rows": ((7,),),
    "pictures": ((4, 6, 6),),
    "texts": ((TOKENS, 8),),
    "two": ((7,), (4, 2, 3)),
}
CASES = [(head, name, False) for head in HEADS for name in BUNDLES]
CASES += [(head, "texts", True) for head in HEADS if head != SIMILARITY]


def losses(name, of_tokens=False, seed=0):
    return LocalLosses(name, SCORES, (SAMPLES, TOKENS)[: 1 + of_tokens], seed, CPU)


def bundle_of(name, seed=0):
    torch.manual_seed(seed)
    return tuple(torch.randn(SAMPLES, *shape, requires_grad=True) for shape in BUNDLES[name])


def made(head, bundle, of_tokens=False, stage=0, seed=0):
    specs = tuple(map(TensorSpec.of, bundle))
    return losses(head, of_tokens, seed).made(stage, specs, cross_entropy)


def answers_of(bundle, of_tokens):
    shape = bundle[0].shape[:2] if of_tokens else (SAMPLES,)
    return torch.arange(torch.Size(shape).numel()).view(shape) % SCORES


def test_backend_and_workers_have_the_same_heads():
    assert HEADS.keys() == LOCAL_HEADS.keys()


@pytest.mark.parametrize(("head", "name", "of_tokens"), CASES)
def test_stage_and_head_learn_from_its_loss(head, name, of_tokens):
    bundle = bundle_of(name)
    loss, answers = made(head, bundle, of_tokens), answers_of(bundle, of_tokens)
    optimizer = torch.optim.SGD(loss.head.parameters(), 0.5)
    told = []
    for _ in range(20):
        optimizer.zero_grad()
        found = loss(bundle, answers)
        assert found.shape == ()
        found.backward()
        optimizer.step()
        told.append(found.item())
    assert loss.head(bundle).shape == (*answers.shape, SCORES)
    assert all(weight.grad.abs().sum() > 0 for weight in loss.head.parameters())
    assert all(tensor.grad.abs().sum() > 0 for tensor in bundle)
    assert told[-1] < told[0]


@pytest.mark.parametrize("head", HEADS)
def test_every_rank_makes_the_same_head(head):
    bundle = bundle_of("pictures")
    one, same = (made(head, bundle).head.state_dict() for _ in range(2))
    other = made(head, bundle, stage=1).head.state_dict()
    assert not [name for name in one if not torch.equal(one[name], same[name])]
    differ = [name for name in one if not torch.equal(one[name], other[name])]
    assert bool(differ) == (head != LINEAR)


@pytest.mark.parametrize("head", HEADS)
def test_features_that_are_all_alike_give_no_nan(head):
    bundle = (torch.zeros(SAMPLES, 4, 6, 6, requires_grad=True),)
    loss = made(head, bundle)
    loss(bundle, answers_of(bundle, False)).backward()
    assert bundle[0].grad.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in loss.head.parameters())


@pytest.mark.parametrize("head", HEADS)
def test_a_head_takes_features_of_bfloat16_where_compute_is_cast(head):
    bundle = (torch.randn(SAMPLES, 7, dtype=torch.bfloat16, requires_grad=True),)
    loss = made(head, bundle)
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(bundle, answers_of(bundle, False))
    assert found.isfinite()
    assert {weight.dtype for weight in loss.head.parameters()} == {torch.float32}


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 9), st.integers(1, 9))
def test_pooled_pictures_are_as_wide_as_they_may_be(channels, height, width):
    rows = pooled(torch.ones(1, channels, height, width))
    fields = rows.shape[1] // channels
    assert fields == 1 or rows.shape[1] <= MOST_POOLED
    size = 1 + max(k for k in range(60) if channels * k * k <= MOST_POOLED)
    assert fields == min(size - 1 or 1, height) * min(size - 1 or 1, width)
    torch.testing.assert_close(rows, torch.ones_like(rows))


def test_similarity_is_the_cosine_of_centred_samples():
    values = torch.randn(5, 9, dtype=torch.float64)
    expected = np.corrcoef(values.numpy())
    np.testing.assert_allclose(similarity(values), expected, atol=1e-6)
    pictures = torch.randn(5, 4, 3, 3, dtype=torch.float64)
    deviations = pictures.flatten(2).numpy().std(axis=2, ddof=1)
    np.testing.assert_allclose(similarity(pictures), np.corrcoef(deviations), atol=1e-6)


def test_the_loss_of_similarity_is_the_weighted_sum_of_both():
    bundle, answers = bundle_of("rows"), torch.arange(SAMPLES) % SCORES
    loss = made(SIMILARITY, bundle)
    wanted = similarity(torch.nn.functional.one_hot(answers, SCORES).float())
    mapped = similarity(bundle[0] @ loss.head.maps[0].T)
    both = 0.01 * np.log(SCORES) + 0.99 * (mapped - wanted).square().mean().item()
    assert loss(bundle, answers).item() == pytest.approx(both, rel=1e-5)


def test_a_weight_that_crosses_the_cut_is_no_feature():
    rows = TensorSpec((SAMPLES, 7), torch.float32, True)
    weight = TensorSpec((SAMPLES, 7), torch.float32, True, is_weight=True)
    mask = TensorSpec((SAMPLES, 7), torch.bool, False)
    assert Features.of((mask, rows, weight), (SAMPLES,)).places == (1,)


def test_a_tensor_whose_rows_are_no_samples_is_no_feature():
    rows = TensorSpec((SAMPLES, 7), torch.float32, True)
    of_heads = TensorSpec((2 * SAMPLES, 7), torch.float32, True)
    assert Features.of((of_heads, rows), (SAMPLES,)).places == (1,)


def test_a_tensor_without_a_row_for_each_token_is_no_feature_of_tokens():
    of_heads = TensorSpec((SAMPLES, 2, TOKENS, 4), torch.float32, True)
    texts = TensorSpec((SAMPLES, TOKENS, 8), torch.float32, True)
    assert Features.of((of_heads, texts), (SAMPLES, TOKENS)).places == (1,)


@pytest.mark.parametrize("of_tokens", [False, True])
def test_a_bundle_that_no_head_can_read_is_refused(of_tokens):
    rows = (SAMPLES, TOKENS)[: 1 + of_tokens]
    flat = TensorSpec(rows, torch.float32, True)
    with pytest.raises(InvalidInput, match="a local head reads samples x"):
        Features.of((flat,), rows)


def asked(head="", schedule="local"):
    plan = Plan("t", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), schedule, 2)
    return TrainSpec(1, plan, local_head=head)


def data_with(answers):
    train = SimpleNamespace(lengths=None)
    return SimpleNamespace(train=train, first=lambda count, length: (answers, answers))


def test_tokens_have_the_low_rank_head_where_none_is_asked_for():
    classes, tokens = torch.zeros(2, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.int64)
    assert LocalLosses.of(asked(), 5, data_with(classes), CPU).name == LINEAR
    of_tokens = LocalLosses.of(asked(), 5, data_with(tokens), CPU)
    assert (of_tokens.name, of_tokens.rows) == (LOW_RANK, (2, 3))
    assert LocalLosses.of(asked("linear"), 5, data_with(tokens), CPU).name == LINEAR
    rows = LocalLosses.of(asked(), 5, data_with(torch.zeros(2, 5)), CPU)
    assert (rows.name, rows.rows) == (LINEAR, (2,))
    assert LocalLosses.of(asked(schedule="gpipe"), 5, data_with(classes), CPU) is None


@pytest.mark.parametrize(
    ("head", "scores", "answers"),
    [
        ("", None, torch.zeros(2, dtype=torch.int64)),
        ("", 5, (torch.zeros(2), torch.zeros(2))),
        ("", 5, torch.zeros(2)),
        ("", 5, torch.zeros(2, 3, 4, dtype=torch.int64)),
        (SIMILARITY, 5, torch.zeros(2, 3, dtype=torch.int64)),
        (SIMILARITY, 5, torch.zeros(2, 5)),
    ],
)
def test_models_and_data_without_a_head_are_refused(head, scores, answers):
    with pytest.raises(InvalidInput):
        LocalLosses.of(asked(head), scores, data_with(answers), CPU)
