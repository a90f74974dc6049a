"""What a limit costs: the faster plan that it forbids, and how much memory that takes."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Level
from backend.cluster.presets import cluster_a
from backend.planning.savings import MemorySaving
from backend.prediction.answer import rank
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.relaxed import Relaxed, relaxed, without_limits
from tests.unit.planning.published import load

GB = 1e9


def a_question(memory: float | None, recompute: MemorySaving = MemorySaving.NEVER) -> Question:
    """VGG-16 on two servers of four."""
    cluster = cluster_a(2)
    device = replace(cluster.device, memory=memory)
    cluster = replace(cluster, device=device)
    return Question(load("vgg16"), cluster, planner="best", recompute=recompute)


def found(question: Question) -> tuple[Prediction, list[Relaxed]]:
    """The best plan, and the faster ones that limits forbid."""
    best = rank(question)[0].prediction
    freed = ((each, rank(each)[0].prediction) for each in without_limits(question, best))
    every = [relaxed(each, free, best) for each, free in freed]
    return best, [each for each in every if each]


def test_a_plan_that_needs_more_memory_names_devices_that_have_it() -> None:
    best, (larger, *_) = found(a_question(6 * GB))
    assert larger.memory is not None
    assert larger.memory >= max(larger.prediction.memory_bytes)
    assert (
        larger.where
        == f"With {larger.memory / 2**30:.1f} GiB per device (sold as {larger.memory / GB:g} GB)"
    )
    fits = rank(a_question(larger.memory))[0].prediction
    assert fits.samples_per_second == pytest.approx(larger.prediction.samples_per_second)
    assert larger.times == pytest.approx(fits.samples_per_second / best.samples_per_second)


def test_what_saving_memory_allows_needs_no_larger_devices() -> None:
    question = replace(a_question(32 * GB), planner="data-parallel")
    best = rank(question)[0].prediction
    _, saving = without_limits(question, best)
    assert saving.recompute is MemorySaving.AUTO
    assert saving.cluster == question.cluster
    faster = replace(best, samples_per_second=1.5 * best.samples_per_second)
    offered = relaxed(saving, faster, best)
    assert offered == Relaxed(None, faster, pytest.approx(1.5))
    assert offered.where.startswith("With recomputation")
    assert relaxed(saving, best, best) is None


@pytest.mark.parametrize("memory", [None, 288 * GB])
def test_nothing_is_said_where_no_limit_binds(memory: float | None) -> None:
    assert found(a_question(memory))[1] == []


def test_devices_without_work_are_counted() -> None:
    question = a_question(None)
    levels = (Level(9, 1e3),)
    idle = replace(question, cluster=replace(question.cluster, levels=levels))
    answer = rank(idle)[0]
    used = answer.prediction.plan.partition.num_devices
    said = f"{9 - used} of 9 devices have no work."
    assert (said in answer.reasons) == (used < 9)
    assert used < 9
