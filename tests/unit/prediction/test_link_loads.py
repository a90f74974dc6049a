"""The links that leave machines: how long messages keep the busiest of them busy, by hand and as
the simulator has it."""

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.bottleneck import most_samples
from backend.prediction.durations import PlanDurations
from backend.prediction.link_loads import link_seconds
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

CLUSTER = Cluster((Level(2, 1e9), Level(2, 1e6)))
"""Two machines of two devices, with 1 MB/s between them."""
SENT = 1000
PROFILE = Profile(
    "p", ModelGraph.chain(tuple(Layer(f"l{n}", "Linear", 1e-6, 1e-6, SENT, 0) for n in range(3))), 1
)


def plan(*devices):
    """A layer for each stage, on such devices; the last stage has the rest."""
    ends = [*range(1, len(devices)), 3]
    firsts = [0, *ends[:-1]]
    stages = zip(firsts, ends, devices, strict=True)
    return Plan("", Partition(tuple(Stage(*each) for each in stages)), "pipedream", 1)


def seconds(asked, cluster=CLUSTER):
    return link_seconds(PlanDurations.of(PROFILE, cluster, asked), asked)


ALONE = SENT / 1e6
CASES = [
    (plan((0, 1, 2, 3)), 0.0),  # sums alone
    (plan((0, 1), (2, 3)), ALONE),  # all microbatches leave one machine, and gradients enter it
    (plan((0, 2), (1, 3)), 0.0),  # replica k hands on to replica k, inside of its machine
    (plan((0, 2), (3, 1)), ALONE),  # out of a machine a half there, and a half of what comes back
    (plan((0,), (1, 2)), ALONE / 2),
    (plan((0,), (2,), (1,)), 2 * ALONE),  # out of machine 0 there, and back for the second cut
]


@pytest.mark.parametrize(("asked", "expected"), CASES)
def test_the_busiest_link_is_as_busy_as_by_hand(asked, expected):
    assert seconds(asked) == pytest.approx(expected)


def test_machines_of_one_level_share_no_link():
    assert seconds(plan((0,), (1, 2)), Cluster((Level(4, 1e6),))) == 0.0


@pytest.mark.parametrize(("asked", "expected"), [case for case in CASES if case[1]])
def test_a_plan_that_its_links_hold_back_is_as_fast_as_they_are(asked, expected):
    found = predict(PROFILE, CLUSTER, asked)
    assert found.seconds_per_minibatch == pytest.approx(expected, rel=0.02)
    assert found.samples_per_second <= most_samples(PROFILE, CLUSTER, asked) * (1 + 1e-9)
    assert most_samples(PROFILE, CLUSTER, asked) == pytest.approx(1 / expected)
