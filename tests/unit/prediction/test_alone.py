"""A planner has one answer to a question, whether it is asked alone or among all others."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import cluster_a, local
from backend.prediction import limits
from backend.prediction.answer import Reply, replies
from backend.prediction.question import PLANNER_NAMES, Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.unit.planning.published import FOLDER, load

published = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the published profiles are not beside the repo"
)
LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3 * (1 + n % 3), 2e-3, 2**20, 2**24) for n in range(8))
SMALL = Question(Profile("small", ModelGraph.chain(LAYERS), 8), local(4))
UNEQUAL = Cluster(
    (Level(2, 1e9), Level(2, 1e8)), devices=tuple(Device("d", 3e8, float(s)) for s in "1123")
)


def told(reply: Reply) -> object:
    """The answer without the seconds that it took, or what is wrong."""
    return replace(reply.answer, planner_seconds=0.0) if reply.answer else str(reply.fault)


def agree(asked: Question) -> dict[str, Reply]:
    """Each planner's reply among all, which it gives alone too."""
    together = {reply.planner: reply for reply in replies(replace(asked, planner=""))}
    assert set(together) == set(PLANNER_NAMES)
    for name in PLANNER_NAMES:
        [alone] = replies(replace(asked, planner=name))
        assert told(alone) == told(together[name])
    return together


@pytest.mark.parametrize(
    "asked",
    [
        SMALL,
        replace(SMALL, cluster=UNEQUAL, update_times=2),
        replace(SMALL, schedule="1f1b-flush", batch=8),
    ],
)
@pytest.mark.parametrize("work", [2e4, 2e5])
def test_a_planner_says_alone_what_it_says_among_others(asked, work, monkeypatch):
    monkeypatch.setattr(limits, "LIMITS", {})
    monkeypatch.setattr(limits, "OTHERS", work)
    agree(asked)


@published
def test_pipedream_finds_the_copied_pipeline_of_vgg16_alone_and_among_others(monkeypatch):
    """Where the planners shared their work it was 4-2-1 at 744.6 samples/s among others."""
    monkeypatch.setitem(limits.LIMITS, "best", 2e5)
    vgg16 = Question(load("vgg16"), cluster_a())
    assert agree(vgg16)["pipedream"].answer.prediction.plan.partition.label == "15-1"
    found = agree(vgg16.under(memory=16e9))["pipedream"].answer.prediction
    assert found.plan.partition.label == "8-4-1"
    assert found.samples_per_second == pytest.approx(808.6, abs=0.1)
