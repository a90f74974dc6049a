"""A home with a bit of everything in it, written through the services as agents write.

By hand:  STAGEFLOW_HOME=/tmp/seeded python tests/app/seed.py  then  stageflow up
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.cluster.cluster import Cluster
from backend.cluster.presets import local
from backend.codec import from_json, to_json
from backend.pipeline.actions import Forward
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span, Timeline
from backend.prediction import answer
from backend.prediction.predict import predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.events import Metrics
from backend.runs.plans import StoredPlan
from backend.runs.profiles import StoredProfile
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.services.runs.attempt import Attempt
from backend.settings import load_settings
from tests.migrated import migrated

NODE = "node-1"
PER_EPOCH = 24
SAMPLES = 16


@dataclass(frozen=True, slots=True)
class Seeded:
    """The ids of what was written."""

    definition: int
    profile: int
    plan: int
    profiled: int
    succeeded: int
    failed: int
    cancelled: int
    running: int
    queued: int


@contextmanager
def settings(home: Path, **variables: str) -> Iterator[None]:
    """STAGEFLOW_HOME and these variables, and no other of Stageflow's."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
            patch.delenv(name)
        patch.setenv("STAGEFLOW_HOME", str(home))
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def fresh() -> Backend:
    """The services on a new database in STAGEFLOW_HOME."""
    migrated(load_settings())
    return connect()


def everything(backend: Backend, *, node_alive: bool = True) -> Seeded:
    """One run in each state, with the profile and the plan that lead to them."""
    if node_alive:
        backend.nodes.beat(NODE)
    definition = backend.definitions.add_zoo("vgg_digits")
    profiled, profile = profile_run(backend, definition.id)
    plan = plan_for(backend, profile)
    return Seeded(
        definition=definition.id,
        profile=profile.id,
        plan=plan.id,
        profiled=profiled,
        succeeded=succeeded(backend, definition.id, plan),
        failed=failed(backend, definition.id, plan),
        cancelled=cancelled(backend, definition.id, plan),
        running=running(backend, definition.id, plan).run.id,
        queued=submit(backend, definition.id, plan).id,
    )


def a_profile(num_blocks: int = 6) -> Profile:
    """A small convolutional network: early layers compute, late layers hold parameters."""
    layers = []
    for block in range(num_blocks):
        width = 16 * 2 ** min(block // 2, 3)
        seconds = 2.4e-3 / (1 + block // 2)
        layers += [
            Layer(f"features.{2 * block}", "Conv2d", seconds, 2 * seconds, 65536, 36 * width**2),
            Layer(f"features.{2 * block + 1}", "ReLU", seconds / 9, seconds / 9, 65536, 0),
        ]
    layers += [
        Layer("flatten", "Flatten", 2e-6, 3e-6, 32768, 0),
        Layer("classifier.0", "Linear", 4e-4, 8e-4, 16384, 2_100_000),
        Layer("classifier.1", "ReLU", 2e-5, 2e-5, 16384, 0),
        Layer("classifier.2", "Linear", 5e-5, 1e-4, 640, 10_280),
    ]
    total = sum(layer.compute for layer in layers)
    return Profile(
        name="vgg_digits",
        graph=ModelGraph.chain(tuple(layers)),
        microbatch=SAMPLES,
        device="cpu",
        whole_forward=0.33 * total,
        whole_backward=0.62 * total,
        repetitions=20,
    )


def profile_run(backend: Backend, definition_id: int) -> tuple[int, StoredProfile]:
    """A profile run that succeeded: its id and what it measured."""
    run = backend.runs.submit(ProfileSpec(definition_id, SAMPLES), "profile vgg_digits")
    attempt = claim(backend, run)
    attempt.progress(RunProgress("layers", 16, 16))
    profile_id = attempt.profile(a_profile())
    attempt.logs([(0, time.time(), "16 layers timed")])
    attempt.finish(RunState.SUCCEEDED, RunSummary(profile_id=profile_id))
    return run.id, backend.profiles.get(profile_id)


def predicted(profile: Profile, cluster: Cluster) -> tuple[Prediction, ...]:
    """Of every planner under PipeDream's schedule, the fastest first."""
    return _predicted(to_json(Profile, profile), cluster)


@cache
def _predicted(profile: bytes, cluster: Cluster) -> tuple[Prediction, ...]:
    """Once per process: every home is seeded with the same."""
    question = Question(from_json(Profile, profile), cluster, planner="", schedule="pipedream")
    return tuple(found.prediction for found in answer.rank(question))


def plan_for(backend: Backend, stored: StoredProfile) -> StoredPlan:
    """A kept plan with two stages on two devices."""
    cluster = local(2)
    found = predicted(stored.profile, cluster)
    straight = next(p for p in found if p.plan.partition.replicas == (1, 1))
    return backend.plans.save(stored.id, cluster, straight)


def another_plan(backend: Backend, stored: StoredProfile) -> StoredPlan:
    """A kept plan of one stage on both devices."""
    cluster = local(2)
    found = predicted(stored.profile, cluster)
    whole = next(p for p in found if len(p.plan.partition.stages) == 1)
    return backend.plans.save(stored.id, cluster, whole)


def submit(backend: Backend, definition_id: int, plan: StoredPlan, name: str = "vgg_digits") -> Run:
    spec = TrainSpec(definition_id, plan.plan, plan.id, epochs=4, target_accuracy=0.95)
    return backend.runs.submit(spec, name)


def claim(backend: Backend, run: Run) -> Attempt:
    attempt = backend.dispatch.claim(run.id, NODE)
    assert attempt is not None
    attempt.isolated(SandboxLevel.BUBBLEWRAP)
    attempt.running()
    return attempt


def succeeded(backend: Backend, definition_id: int, plan: StoredPlan) -> int:
    run = submit(backend, definition_id, plan)
    attempt = claim(backend, run)
    for epoch in range(4):
        train_epoch(backend, attempt, plan, epoch)
    attempt.predict(3, PER_EPOCH)  # as agents do: at the end, beside the last epoch
    weights = Path(load_settings().home) / "weights.safetensors"
    weights.write_bytes(b"\0" * 4096)
    attempt.artifact("weights", weights)
    attempt.finish(
        RunState.SUCCEEDED,
        RunSummary(
            accuracy=0.968,
            loss=0.1,
            epochs=4,
            seconds_per_minibatch=0.0121,
            samples_per_second=1322.0,
            bubble=0.09,
            metrics={"f1": 0.95},
        ),
    )
    return run.id


def failed(backend: Backend, definition_id: int, plan: StoredPlan) -> int:
    run = submit(backend, definition_id, plan, "broken loss")
    attempt = claim(backend, run)
    attempt.logs([(1, time.time(), "loading"), (1, time.time(), "update 3 loss nan")])
    error = RunError(
        "LossNotFinite",
        "the loss is nan after update 3",
        "Try a smaller learning rate; it was 0.01.",
        'Traceback (most recent call last):\n  File "model.py", line 7, in loss\nValueError: nan',
    )
    attempt.finish(RunState.FAILED, RunSummary(), error)
    return run.id


def cancelled(backend: Backend, definition_id: int, plan: StoredPlan) -> int:
    return backend.runs.cancel(submit(backend, definition_id, plan, "not needed").id).id


def running(backend: Backend, definition_id: int, plan: StoredPlan) -> Attempt:
    """A training in its third epoch; the attempt goes on writing."""
    attempt = claim(backend, submit(backend, definition_id, plan, "vgg_digits again"))
    for epoch in range(2):
        train_epoch(backend, attempt, plan, epoch)
    return attempt


def train_epoch(
    backend: Backend, attempt: Attempt, plan: StoredPlan, epoch: int, slowed: float = 1.0
) -> None:
    """Losses, an evaluation, both timelines and a few lines of log of one epoch, in which rank 1
    took `slowed` times as long for each action."""
    first = epoch * PER_EPOCH
    steps = tuple(range(first, first + PER_EPOCH))
    start = time.time()
    noise = random.Random(epoch)
    losses = tuple(2.3 * 0.965**step + 0.05 * noise.random() for step in steps)
    attempt.metrics(Metrics("loss", steps, losses, tuple(start + 0.1 * s for s in steps), epoch))
    last = (steps[-1],)
    end = (start + 0.1 * steps[-1],)
    attempt.metrics(Metrics("accuracy", last, (1 - 0.5 / (epoch + 1) ** 2,), end, epoch))
    attempt.metrics(Metrics("throughput", last, (1322.0,), end, epoch))
    attempt.metrics(Metrics("f1", last, (0.95 - 0.1 / (epoch + 1),), end, epoch))
    attempt.logs([(1, start + 0.1 * s, f"update {s} loss {losses[s - first]:.3f}") for s in steps])
    attempt.progress(RunProgress("train", first + PER_EPOCH, 4 * PER_EPOCH))
    measured = a_measured_timeline(backend, plan, noise, slowed)
    for rank in range(measured.num_ranks):
        spans = [span for span in measured.spans if span.rank == rank]
        attempt.spans("measured", rank, epoch, encode(Timeline.of(spans)), len(spans))
    loading = [_loading(s) for s in measured.spans if s.rank == 0 and isinstance(s.action, Forward)]
    attempt.spans("loading", 0, epoch, encode(Timeline.of(loading)), len(loading))


def a_measured_timeline(
    backend: Backend, plan: StoredPlan, noise: random.Random, slowed: float = 1.0
) -> Timeline:
    """The predicted timeline, every action a few percent longer or shorter, those of rank 1 by as
    much as it was `slowed`."""
    profile = backend.profiles.get(plan.profile_id).profile
    _, predicted = predicted_program(profile, plan.cluster, plan.plan, PER_EPOCH)
    factors = {1: slowed}
    return Timeline.of(
        tuple(_shaken(span, noise, factors.get(span.rank, 1.0)) for span in predicted.spans)
    )


def _loading(forward: Span) -> Span:
    """Half before the forward and half while it waits."""
    half = 0.05 * forward.seconds
    return replace(forward, start=forward.start - half, end=forward.start + half)


def _shaken(span: Span, noise: random.Random, factor: float = 1.0) -> Span:
    end = span.start + span.seconds * factor * noise.uniform(0.9, 1.0)
    return replace(span, start=1.03 * span.start, end=1.03 * end)


if __name__ == "__main__":
    print(everything(fresh()))
