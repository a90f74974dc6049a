"""Plans changed by hand."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.prediction.edit import BY_HAND, edit
from backend.prediction.predict import predict

PLAN = Plan("pipedream", Partition((Stage(0, 3, (0, 1)),)), "pipedream", 8)


def test_an_edited_plan_is_predicted_like_any_other(profile, cluster):
    found = edit(profile, cluster, PLAN, [1, 3], [2, 1])
    stages = (Stage(0, 1, (0, 1)), Stage(1, 3, (2,)))
    assert found.plan == Plan(BY_HAND, Partition(stages), "pipedream", 8)
    assert found == predict(profile, cluster, found.plan)


@pytest.mark.parametrize(
    ("stops", "replicas", "told"),
    [
        ([1, 3], [1], "2 stages .* 1 have replicas"),
        ([1, 3], [4, 1], "5 devices, the cluster has 4"),
        ([1, 3], [0, 1], "0-1"),
        ([2, 1, 3], [1, 1, 1], "layers 2..0"),
        ([1, 2], [1, 1], "covers 2 layers"),
    ],
)
def test_what_cannot_be_is_said_with_its_numbers(profile, cluster, stops, replicas, told):
    with pytest.raises(InvalidInput, match=told):
        edit(profile, cluster, PLAN, stops, replicas)


def test_memory_counts_at_once(profile):
    small = Cluster((Level(4, 1000.0),), Device("small", memory=1.0))
    with pytest.raises(PlanDoesNotFit, match="stage"):
        edit(profile, small, PLAN, [1, 3], [1, 1])
