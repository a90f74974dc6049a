"""The summary of a run, from a timeline whose numbers are known."""

import tracemalloc
from dataclasses import replace
from math import nan

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites
from backend.prediction.predict import predict, predicted_program
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.events import Clock, Metrics
from backend.runs.request.spec import ProfileSpec, TrainSpec
from workers.supervisor.reporting.measured import num_microbatches, summarise
from workers.supervisor.reporting.results import MOST, Results

PLAN = Plan("even", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "pipedream", 16)
CLUSTER = Cluster((Level(2, 1e9),))
SITES = Cluster((Level(2, 1e9), Level(2, 1e8, sites=True)))
LAYER = Layer("layer", "Linear", 0.01, 0.02, 1000, 1000)
PROFILE = Profile("two", ModelGraph.chain((LAYER, LAYER)), 16)


def results(num: int, plan: Plan = PLAN) -> Results:
    """What the ranks would have told had they run exactly as predicted."""
    _, timeline = predicted_program(PROFILE, CLUSTER if not plan.is_apart else SITES, plan, num)
    spans = {rank: timeline.at(timeline.rank == rank) for rank in range(len(plan.devices))}
    return Results(segment=3, spans=spans, epochs=4)


@pytest.mark.parametrize("schedule", ["pipedream", "1f1b-flush", "gpipe"])
def test_a_run_as_predicted_measures_what_was_predicted(schedule: str):
    plan = Plan("even", PLAN.partition, schedule, 16, 1 if schedule == "pipedream" else 4)
    predicted = predict(PROFILE, CLUSTER, plan)
    measured = summarise(TrainSpec(1, plan), results(64, plan))
    assert measured.seconds_per_minibatch == pytest.approx(predicted.seconds_per_minibatch)
    assert measured.samples_per_second == pytest.approx(predicted.samples_per_second)
    assert measured.bubble is not None
    assert 0 < measured.bubble < 1


@pytest.mark.parametrize("schedule", ["pipedream", "1f1b-flush"])
def test_pipelines_with_devices_of_their_own_are_timed_together(schedule: str):
    batch = 1 if schedule == "pipedream" else 4
    rule = Sites("diloco", every=4, devices=2)
    plan = replace(PLAN, schedule=schedule, batch=batch, num_pipelines=2, sites=rule)
    predicted, told = predict(PROFILE, SITES, plan), results(128, plan)
    measured = summarise(TrainSpec(1, plan), told)
    assert measured.seconds_per_minibatch == pytest.approx(predicted.seconds_per_minibatch)
    assert measured.samples_per_second == pytest.approx(predicted.samples_per_second)
    del told.spans[3]
    assert summarise(TrainSpec(1, plan), told).seconds_per_minibatch is None


def test_microbatches_are_counted_once_each():
    assert num_microbatches(results(24)) == 24


def test_the_loss_is_the_mean_of_the_last_epoch():
    told, spec = Results(newest={"accuracy": 0.9, "f1": 0.5}, epochs=2), TrainSpec(1, PLAN)
    for epoch, values in ((0, (4.0, 2.0)), (1, (1.0,)), (0, (9.0,)), (1, (0.5,))):
        steps = tuple(range(len(values)))
        told.note(Metrics("loss", steps, values, (1.0,) * len(values), epoch), spec)
    summary = summarise(spec, told)
    assert (summary.loss, summary.accuracy, summary.epochs) == (0.75, 0.9, 2)
    assert summary.metrics == {"f1": 0.5}


def test_the_losses_of_an_attempt_are_not_kept():
    told, spec = Results(), TrainSpec(1, PLAN)
    values = tuple(float(value) for value in range(1_000))
    event = Metrics("loss", tuple(range(1_000)), values, (1.0,) * 1_000)
    tracemalloc.start()
    for _ in range(100):
        told.note(replace(event, values=tuple(value + 0.5 for value in values)), spec)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 100_000  # of 3.2 MB
    assert summarise(spec, told).loss == 500.0


def test_the_time_to_the_target_counts_from_the_start():
    told = Results(reached=130.5)
    assert summarise(TrainSpec(1, PLAN), told, started=100.0).seconds_to_target == 30.5
    assert summarise(TrainSpec(1, PLAN), Results(), started=100.0).seconds_to_target is None


def test_the_clocks_of_other_hosts_are_kept_by_rank():
    told = Results(clocks={2: Clock(2, 1, -0.5, 1e-4), 1: Clock(1, 1, 0.25, 2e-4)})
    found = summarise(TrainSpec(1, PLAN), told).clocks
    assert [(clock.rank, clock.seconds) for clock in found] == [(1, 0.25), (2, -0.5)]


def test_a_segment_that_not_all_ranks_have_told_is_not_timed():
    told = results(16)
    del told.spans[1]
    assert summarise(TrainSpec(1, PLAN), told).seconds_per_minibatch is None


def test_spans_without_a_forward_are_refused():
    told = Results(segment=0, spans={0: Timeline.of(()), 1: Timeline.of(())})
    with pytest.raises(InvalidInput):
        summarise(TrainSpec(1, PLAN), told)


def test_a_profile_run_has_no_times():
    summary = summarise(ProfileSpec(1), Results(profile_id=7))
    assert (summary.profile_id, summary.loss, summary.bubble) == (7, None, None)


def test_the_newest_of_each_metric_is_kept_if_it_is_a_number():
    told, spec = Results(), TrainSpec(1, PLAN)
    for name, value in (("f1", 0.5), ("f1", 0.75), ("f1", nan), ("throughput", 9.0)):
        told.note(Metrics(name, (1,), (value,), (1.0,)), spec)
    for number in range(2 * MOST):
        told.note(Metrics(f"m{number}", (1,), (1.0,), (1.0,)), spec)
    metrics = summarise(spec, told).metrics
    assert metrics["f1"] == 0.75
    assert "throughput" not in metrics
    assert len(metrics) == MOST


def test_a_rank_that_is_behind_takes_nothing_from_the_newest_segment():
    spans, told = results(24).spans, Results()
    for rank, segment in ((0, 0), (0, 1), (1, 0), (1, 1)):
        told.note_spans(rank, segment, spans[rank])
    assert told.segment == 1
    assert sorted(told.spans) == [0, 1]
