"""A run that went on with fewer nodes, and what a launch says of that."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.components.launch import fallback_line
from app.queries import planner
from app.queries.background import Background, under_way
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.cluster.registered import from_nodes
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.fallback import Fallback
from backend.prediction.predict import predict
from backend.prediction.watch import Watch
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics
from backend.runs.plans import StoredPlan
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs import survival
from backend.services.runs.attempt import Attempt
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of

OTHER, DEVICES = "node-2", (local(1).device,) * 2
LOST = RunError("NodeLost", "node-2 is lost")


@pytest.fixture
def plan(backend: Backend, seeded: seed.Seeded, monkeypatch: pytest.MonkeyPatch) -> StoredPlan:
    """Of two nodes, with a replica of each stage on both."""
    monkeypatch.setattr(survival, "WAIT", 0.0)
    backend.runs.cancel(seeded.queued)
    backend.runs.cancel(seeded.running)
    for name in (seed.NODE, OTHER):
        backend.nodes.beat(name, DEVICES)
    profile = backend.profiles.get(seeded.profile).profile
    cluster, num = from_nodes([DEVICES] * 2), len(profile.layers)
    stages = (Stage(0, num // 2, (0, 2)), Stage(num // 2, num, (1, 3)))
    plan = Plan("by hand", Partition(stages), "gpipe", profile.microbatch, batch=4)
    return backend.plans.save(seeded.profile, cluster, predict(profile, cluster, plan))


def told(attempt: Attempt, first: int, pace: float) -> None:
    """Ten losses, and then a checkpoint."""
    steps = tuple(range(first, first + 10))
    times = tuple(time.time() + pace * n for n in range(10))
    attempt.metrics(Metrics("loss", steps, (1.0,) * 10, times, 0))
    folder = attempt.checkpoint_folder(first + 10)
    folder.mkdir(parents=True)
    (folder / "stage-0.safetensors").write_bytes(b"12345")
    file = CheckpointFile("stage-0.safetensors", 5, "ab")
    attempt.checkpoint(Mark(0, 64 * (first + 10), first + 10), [file], 3)


def test_the_page_shows_both_plans_and_marks_the_curve(
    backend: Backend, seeded: seed.Seeded, plan: StoredPlan, open_page: Open
) -> None:
    spec = TrainSpec(seeded.definition, plan.plan, plan.id, nodes=(seed.NODE, OTHER))
    release(backend, seeded)
    run = backend.runs.submit(spec)
    first = seed.claim(backend, run)
    told(first, 0, 1e-4)
    first.finish(RunState.FAILED, RunSummary(), LOST)
    backend.nodes.lost(OTHER)
    second = seed.claim(backend, run)
    second.resumed(second.beginnings()[0])
    told(second, 10, 2e-4)
    (fallback,) = run.fallbacks
    assert fallback.plan is not None
    page = open_page(Page.RUN, id=run.id)
    assert not page.exception
    assert "If one node is lost\\: 0." in text_of(page)
    (table,) = [found.value for found in page.dataframe if "attempt" in found.value]
    assert list(table["plan"]) == ["2-2 · gpipe", f"{fallback.plan.label}"]
    rates = list(table["predicted, samples/s"])
    assert rates[1] == pytest.approx(rates[0] * fallback.factor)
    measured = list(table["measured, samples/s"])
    assert measured[1] == pytest.approx(64 / 2e-4, rel=0.05)


def test_a_launch_says_what_happens_without_a_node(
    backend: Backend, seeded: seed.Seeded, plan: StoredPlan, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=plan.id)
    assert "If one node is lost\\: 0." in text_of(page)
    page.multiselect(key="place-nodes").set_value([seed.NODE, OTHER]).run()
    page.checkbox(key="place-replan").uncheck().run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.replan, run.fallbacks) == (False, ())
    again = backend.runs.submit(replace(run.spec, replan=True))
    assert [each.count for each in again.fallbacks] == [1]


def test_the_search_for_fewer_nodes_ends_with_who_wants_it(
    backend: Backend,
    seeded: seed.Seeded,
    plan: StoredPlan,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another plan is chosen: nobody waits for the fallbacks of the one before."""
    begun: list[Background[Fallback]] = []

    class Endless:
        def search(self, *_: object, watch: Watch) -> Iterator[Fallback]:
            while not watch.stop():
                time.sleep(0.01)
            yield from ()

    def seen(*given: object) -> Background[Fallback]:
        begun.append(under_way(*given))
        return begun[-1]

    planner.for_fewer.clear()
    monkeypatch.setattr(planner, "THOROUGH", Endless())
    monkeypatch.setattr(fallback_line, "PATIENCE", 0.05)
    monkeypatch.setattr(fallback_line, "under_way", seen)
    profile = backend.profiles.get(seeded.profile).profile
    other = replace(plan.plan, batch=8)
    wider = backend.plans.save(seeded.profile, plan.cluster, predict(profile, plan.cluster, other))
    page = open_page(Page.LAUNCH, plan=plan.id)
    first = begun[-1]
    assert "are being computed" in text_of(page)
    assert first.is_running
    page.query_params["plan"] = str(wider.id)
    page.run()
    assert first.wait(240)
    assert first.was_left  # by this page: AppTest's visitors are never away
    assert begun[-1] is not first
    assert begun[-1].is_running
    begun[-1].cancel()
    assert begun[-1].wait(240)
    planner.for_fewer.clear()


def release(backend: Backend, seeded: seed.Seeded) -> None:
    """The run that is live lets go of its devices."""
    attempt = backend.runs.get(seeded.running).attempt
    backend.dispatch.abandon(seeded.running, attempt, seed.NODE)
