"""An emulated run through a real agent: more ranks than cores, in the profile's seconds."""

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState

pytestmark = pytest.mark.slow

LAYERS = tuple(Layer(f"l{n}", "", 0.004, 0.008, 10**5, 10**6) for n in range(4))
PROFILE = Profile("four", ModelGraph.chain(LAYERS), 4)
CLUSTER = Cluster((Level(2, 1e9), Level(3, 1e8)))
STAGES = (Stage(0, 2, (0, 1)), Stage(2, 3, (2, 3)), Stage(3, 4, (4, 5)))


@pytest.mark.timeout(400)
def test_six_ranks_take_the_time_of_six_devices(stack):
    definition = stack.backend.definitions.add_zoo("mlp")
    profile = stack.backend.profiles.add(PROFILE, definition.id)
    prediction = predict(PROFILE, CLUSTER, Plan("", Partition(STAGES), "pipedream", 4))
    kept = stack.backend.plans.save(profile.id, CLUSTER, prediction)
    spec = TrainSpec(definition.id, kept.plan, kept.id, epochs=1, emulate=2.0)
    run = stack.finished(spec)
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    assert run.summary.epochs == 1
    assert run.summary.loss is None
    assert run.summary.seconds_per_minibatch > 0.95 * 0.012
    measured = stack.backend.runs.spans.timeline(run.id, "measured")
    predicted = stack.backend.runs.spans.timeline(run.id, "predicted")
    actions = [{(s.rank, s.index, s.action) for s in t.spans} for t in (measured, predicted)]
    assert actions[0] == actions[1]
    assert any("Emulated: 2 s" in line.text for line in stack.backend.runs.logs.every(run.id))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"emulate": -1.0}, "-1 seconds"), ({"target_accuracy": 0.9}, "learns nothing")],
)
def test_what_cannot_be_emulated(stack, changes, words):
    definition = stack.backend.definitions.add_zoo("mlp")
    profile = stack.backend.profiles.add(PROFILE, definition.id)
    prediction = predict(PROFILE, CLUSTER, Plan("", Partition(STAGES), "pipedream", 4))
    kept = stack.backend.plans.save(profile.id, CLUSTER, prediction)
    spec = {"plan_id": kept.id, "emulate": 1.0} | changes
    with pytest.raises(InvalidInput, match=words):
        stack.backend.runs.submit(TrainSpec(definition.id, kept.plan, **spec))
    local = kept.plan.under("local", 4)
    with pytest.raises(InvalidInput, match="emulated devices have none"):
        stack.backend.runs.submit(TrainSpec(definition.id, local, kept.id, emulate=1.0))
    with pytest.raises(InvalidInput, match="this plan has none"):
        stack.backend.runs.submit(TrainSpec(definition.id, kept.plan, emulate=1.0))
