"""Several runs on one node at once, each on devices of its own, through a real agent."""

import os
from collections import Counter
from collections.abc import Callable, Iterator

import psutil
import pytest

from backend.cluster.cluster import Cluster, Level
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState
from backend.settings import Settings
from tests.integration.agent.conftest import Stack

pytestmark = pytest.mark.slow

LAYERS = tuple(Layer(f"l{n}", "", 0.004, 0.008, 10**5, 10**6) for n in range(4))
PROFILE = Profile("four", ModelGraph.chain(LAYERS), 4)
CLUSTER = Cluster((Level(8, 1e9),))
SIZES = (1, 2, 1, 2, 1, 1, 8, 1)


@pytest.fixture
def shared(settings: Settings, new_stack: Callable[[Settings], Stack]) -> Iterator[Stack]:
    """A node with 8 devices, whatever it has of cores."""
    stack = new_stack(settings.model_copy(update={"devices": 8}))
    stack.start_agent()
    yield stack
    stack.close()


def spec_of(stack: Stack, definition_id: int, profile_id: int, devices: int) -> TrainSpec:
    """An emulated training on so many devices: on 8, every stage is of two replicas."""
    replicas = 2 if devices == 8 else 1
    count = devices // replicas
    stages = tuple(
        Stage(n, n + 1 if n + 1 < count else 4, tuple(range(n * replicas, (n + 1) * replicas)))
        for n in range(count)
    )
    plan = Plan("", Partition(stages), "pipedream", 4)
    kept = stack.backend.plans.save(profile_id, CLUSTER, predict(PROFILE, CLUSTER, plan))
    return TrainSpec(definition_id, kept.plan, kept.id, epochs=2, emulate=2.0)


@pytest.mark.timeout(500)
def test_eight_runs_take_turns_on_eight_devices(shared: Stack):
    """Those that fit are carried at once; the one that needs all devices is not starved."""
    backend = shared.backend
    definition = backend.definitions.add_zoo("mlp")
    profile = backend.profiles.add(PROFILE, definition.id)
    specs = [spec_of(shared, definition.id, profile.id, size) for size in SIZES]
    runs = [backend.runs.submit(spec) for spec in specs]
    most = 0

    def all_ended() -> bool:
        nonlocal most
        held = backend.runs.held().get("tester", {})
        sizes = dict(zip((run.id for run in runs), SIZES, strict=True))
        assert Counter(held.values()) == {run: sizes[run] for run in set(held.values())}
        most = max(most, len(set(held.values())))
        return all(backend.runs.get(run.id).state.is_final for run in runs)

    shared.wait(all_ended, 400)
    ended = [backend.runs.get(run.id) for run in runs]
    assert [(run.state, run.error) for run in ended] == [(RunState.SUCCEEDED, None)] * len(runs)
    assert most == 6
    large, last = ended[SIZES.index(8)], ended[-1]
    assert large.started_at < last.started_at  # nobody overtook it where no end was known


@pytest.mark.timeout(200)
def test_ranks_are_bound_to_the_cores_of_their_devices(shared: Stack):
    cores = sorted(os.sched_getaffinity(0))
    backend = shared.backend
    definition = backend.definitions.add_zoo("mlp")
    profile = backend.profiles.add(PROFILE, definition.id)
    run = backend.runs.submit(spec_of(shared, definition.id, profile.id, 1))

    def bound() -> set[tuple[int, ...]]:
        home = str(shared.settings.run_folder(run.id, 1))
        found = set()
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME", "").startswith(home):
                    found.add(tuple(process.cpu_affinity()))
            except psutil.Error:
                continue
        return found

    shared.wait(bound)
    assert bound() <= {(cores[0],)}
    assert shared.until_final(run.id).state is RunState.SUCCEEDED
