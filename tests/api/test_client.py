"""Everything that the pages do, over HTTP with the Python client."""

import gzip
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow.parquet
import pytest
from pyarrow import BufferReader

from app.client import ApiProblem, Client, ServerUnreachable
from app.exports.catalog import EXPORTS
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import write_cluster
from backend.cluster.presets import local
from backend.codec import to_plain
from backend.planning.plan import Plan
from backend.prediction.trainers.forms import TRAINERS
from backend.runs.history.listing import RunFilter
from backend.runs.history.views import ListView
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.states import RunState
from backend.runs.sweeps.sweep import SweepAxis, SweepSpec
from tests.api.conftest import Served
from tests.unit.profiles.test_traces import rank
from tests.unit.profiles.traces_by_hand import on_a_gpu


def test_runs_are_the_services_own(served: Served) -> None:
    page = served.client.runs(limit=2)
    assert page == served.backend.runs.list(limit=2)
    assert page.total >= 6
    assert served.client.run(served.seeded.succeeded).summary.accuracy == 0.968
    assert page.runs[0].owner == "ada"


def test_filters_and_orders_are_passed_on(served: Served) -> None:
    failed = served.client.runs(states=["failed", "cancelled"], kind="train")
    assert {run.id for run in failed.runs} == {served.seeded.failed, served.seeded.cancelled}
    best = served.client.runs(sort="accuracy", limit=1).runs
    assert best[0].id == served.seeded.succeeded
    assert served.client.runs(min_accuracy=0.99).total == 0
    (found,) = served.client.runs(metric="f1", min_metric=0.9, max_metric=0.99).runs
    assert found.id == served.seeded.succeeded
    assert found.summary.metrics["f1"] == 0.95
    assert served.client.runs(metric="f1", min_metric=0.96).total == 0
    assert served.client.runs(metric="nothing").total == 0
    assert served.client.runs(since="2020-01-01T00:00:00Z").total >= 6


def test_from_a_model_to_a_queued_training(served: Served) -> None:
    client = served.client
    zoo = client.add_zoo("vgg_digits")
    assert zoo in client.definitions()
    mine = client.add_definition("def model():\n    return None\n", "mine.py")
    assert (mine.name, mine.version) == ("mine", 1)
    cluster = write_cluster(local(2))
    proposals = client.propose(served.seeded.profile, cluster, schedule="1f1b-flush", batch=4)
    plan = client.save_plan(
        served.seeded.profile, cluster, proposals[0]["prediction"]["plan"], "over http"
    )
    assert client.plan(plan.id) == plan
    bare = proposals[0]["prediction"]["plan"]
    assert client.predict(served.seeded.profile, cluster, bare) == plan.prediction
    assert plan.name == "over http"
    assert client.label_plan(plan.id, name="renamed").name == "renamed"
    unused = client.save_plan(served.seeded.profile, cluster, bare)
    told = client.differences(plan.id, unused.id)
    assert (told.names, told.facts) == (("renamed", unused.name), ())
    assert client.delete_plan(unused.id) == unused
    kept = client.save_cluster("ours", cluster)
    assert client.clusters() == [kept]
    assert client.propose(served.seeded.profile, "ours", planner="straight")
    assert {each["energy"] for each in proposals} == {None}
    ranked = client.propose(served.seeded.profile, "dgx-h100:1", energy_floor=0.0)
    joules = [each["energy"]["joules"] for each in ranked]
    assert ranked[0]["is_pareto"]
    assert ranked[0]["money"] is None
    assert joules == sorted(joules)
    priced = write_cluster(Cluster((Level(4, 1e9),), Device("cpu", price=2.0)))
    cheap = [each["money"] for each in client.propose(served.seeded.profile, priced, money_floor=0)]
    assert None not in cheap
    assert cheap == sorted(cheap)
    with pytest.raises(ApiProblem, match="a floor of 2"):
        client.propose(served.seeded.profile, "dgx-h100:1", energy_floor=2)
    [with_watts] = client.propose(served.seeded.profile, "dgx-h100:1", planner="straight")
    stages = with_watts["prediction"]["plan"]["partition"]["stages"]
    watts = 700 * sum(len(stage["devices"]) for stage in stages)
    joules = watts / with_watts["prediction"]["samples_per_second"]
    parts = {"static": pytest.approx(joules), "compute": 0.0, "memory": 0.0, "links": 0.0}
    assert with_watts["energy"] == {"joules": pytest.approx(joules), "is_most": True, **parts}
    with pytest.raises(ApiProblem, match="has a cluster 'Ours'") as taken:
        client.save_cluster("Ours", "dgx-h100:2")
    assert taken.value.status == 409
    assert client.delete_cluster(client.label_cluster(kept.id, name="theirs").id).name == "theirs"
    spec = TrainSpec(served.seeded.definition, plan.plan, plan.id, epochs=2)
    run = client.submit(spec, "by client")
    base = replace(spec, plan_id=plan.id)
    sweep = client.start_sweep(SweepSpec(base, (SweepAxis("lr", (0.1, 0.01)),)), "rates")
    assert [each.values for each in sweep.results] == [{"lr": 0.1}, {"lr": 0.01}]
    assert client.sweeps() == [client.sweep(sweep.sweep.id)]
    assert client.cancel_sweep(sweep.sweep.id).num_ended == 2
    said = client.comment(run.id, "the first by client")
    assert client.comments(run.id) == [said]
    assert client.delete_comment(said.id) == said
    wanted = ListView(RunFilter(text="by client", states=(RunState.QUEUED,)), columns=("Loss",))
    view = client.save_view("mine", wanted)
    assert (view.view, client.views()) == (wanted, [view])
    with pytest.raises(ApiProblem, match="there is a view 'Mine'"):
        client.save_view("Mine", wanted)
    assert client.delete_view(view.id) == view
    spec = replace(spec, planned_in="float32")  # that of the plan's profile
    assert (run.state, run.spec, run.owner) == (RunState.QUEUED, spec, "ada")
    assert [queued.run.id for queued in client.queue()][-1] == run.id
    assert client.cancel(run.id).state is RunState.CANCELLED
    assert client.wait(run.id).state is RunState.CANCELLED
    again = client.retry(run.id)
    assert (again.spec, again.origin_id) == (spec, run.id)
    client.cancel(again.id)
    with pytest.raises(ApiProblem, match="needed by run") as caught:
        client.delete_plan(plan.id)
    assert caught.value.status == 409
    with pytest.raises(ApiProblem, match="needed by plan"):
        client.delete_profile(served.seeded.profile)


def test_a_profile_and_its_run(served: Served) -> None:
    assert served.client.profile(served.seeded.profile).profile.name == "vgg_digits"
    run = served.client.submit(ProfileSpec(served.seeded.definition, 8))
    assert run.spec.microbatch == 8
    served.client.cancel(run.id)


def test_trackers(served: Served) -> None:
    """The server has none: what is asked of one is refused with its setting's name."""
    client, run = served.client, served.seeded.succeeded
    assert client.trackers(run) == []
    for ask in (client.follow, client.stop_following):
        with pytest.raises(
            ApiProblem, match=r"no tracker 'mlflow' is set up|not followed in"
        ) as no:
            ask(run, "mlflow")
        assert no.value.status == 422
    with pytest.raises(ApiProblem, match="no tracker 'mlflow' is set up"):
        client.import_run("0123456789abcdef", served.seeded.definition, {"f1_val": "f1"})


def test_labels(served: Served) -> None:
    run = served.client.label(served.seeded.failed, starred=True, tags=["a", "b"], note="why?")
    assert (run.starred, run.tags, run.note) == (True, ("a", "b"), "why?")
    assert [found.id for found in served.client.runs(tag="b", starred=True).runs] == [run.id]
    assert served.client.label(run.id, tags=[]).tags == ()


def test_a_run_that_works_cannot_be_retried(served: Served) -> None:
    with pytest.raises(ApiProblem) as caught:
        served.client.retry(served.seeded.running)
    assert (caught.value.status, caught.value.kind) == (409, "NotEnded")


def test_a_run_without_a_checkpoint_cannot_be_resumed(served: Served) -> None:
    with pytest.raises(ApiProblem, match="has no checkpoint") as caught:
        served.client.resume(served.seeded.failed, epochs=20, learning_rate=0.25)
    assert (caught.value.status, caught.value.kind) == (409, "NothingToResume")
    (attempt,) = served.client.attempts(served.seeded.failed)
    assert (attempt.number, attempt.outcome) == (1, "failed")


def test_an_ended_run_is_deleted_and_no_other(served: Served) -> None:
    client = served.client
    run = client.submit(ProfileSpec(served.seeded.definition))
    with pytest.raises(ApiProblem, match="is queued") as caught:
        client.delete(run.id)
    assert caught.value.status == 409
    client.cancel(run.id)
    assert client.delete(run.id).id == run.id
    with pytest.raises(ApiProblem) as caught:
        client.run(run.id)
    assert caught.value.status == 404


def test_log_and_metrics(served: Served) -> None:
    lines = list(served.client.logs(served.seeded.succeeded))
    assert lines == list(served.backend.runs.logs.every(served.seeded.succeeded))
    assert list(served.client.logs(served.seeded.succeeded, lines[-2].seq)) == lines[-1:]
    names = served.client.metric_names(served.seeded.succeeded)
    assert names == ["accuracy", "f1", "loss", "throughput"]
    whole = served.client.metric(served.seeded.succeeded, "loss")
    assert len(whole) == 96
    few = served.client.metric(served.seeded.succeeded, "loss", points=10)
    assert 2 <= len(few) <= 10
    assert few[0].value == pytest.approx(sum(p.value for p in whole[:10]) / 10)


def test_every_export(served: Served) -> None:
    run = served.seeded.succeeded
    files = {name: served.client.export(run, name) for name in EXPORTS}
    assert orjson.loads(files["json"])["id"] == run
    assert files["csv"].startswith(b'"metric","step","epoch","value","time"\n')
    table = pyarrow.parquet.read_table(BufferReader(files["parquet"]))
    assert table.num_rows == files["csv"].count(b"\n") - 1 == 96 + 4 + 4 + 4
    spans = pyarrow.parquet.read_table(BufferReader(files["spans"])).to_pydict()
    assert set(spans["kind"]) == {"measured", "predicted", "loading"}
    assert set(spans["segment"]) == {0, 1, 2, 3}
    events = orjson.loads(files["trace"])["traceEvents"]
    assert {"M", "X"} <= {event["ph"] for event in events}
    named = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {name.partition(",")[0] for name in named} == {"measured", "predicted"}
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert b"src=" not in files["html"].split(b"</style>")[0]
    assert b"update 95 loss" in files["log"]
    assert files["png"].startswith(b"\x89PNG")


def test_programs_out_and_in(served: Served) -> None:
    plan = served.client.plan(served.seeded.plan)
    text = served.client.program(plan.id).decode()
    assert text.startswith(f"schedule {plan.plan.schedule}\n")
    cluster = write_cluster(plan.cluster)
    found = served.client.examine(plan.profile_id, cluster, text)
    assert found["faults"] == []
    assert found["prediction"]["samples_per_second"] > 0
    broken = served.client.examine(plan.profile_id, cluster, text.replace("0F0@0 ", ""))
    assert broken["prediction"] is None
    assert "rank 0 never runs 0F0" in {fault["text"] for fault in broken["faults"]}
    with pytest.raises(ApiProblem, match="no form"):
        served.client.program(plan.id, "doc")


def test_a_plan_leaves_for_other_trainers(served: Served) -> None:
    stashing = served.client.plan(served.seeded.plan)
    with pytest.raises(ApiProblem, match="keeps versions of the weights"):
        served.client.program(stashing.id, "torch")
    plan = to_plain(Plan, replace(stashing.plan, schedule="1f1b-flush", batch=4))
    kept = served.client.save_plan(stashing.profile_id, write_cluster(stashing.cluster), plan)
    profile = served.client.profile(stashing.profile_id).profile
    for form in ("torch", "torchtitan", "deepspeed"):
        there = TRAINERS[form].of(profile, kept.plan)
        assert served.client.program(kept.id, form) == there
    with pytest.raises(ApiProblem, match="lists of numbered layers"):
        served.client.program(kept.id, "megatron")
    served.client.delete_plan(kept.id)


def test_artifacts(served: Served) -> None:
    assert served.client.artifact(served.seeded.succeeded, "weights") == b"\0" * 4096
    with pytest.raises(ApiProblem, match="no file"):
        served.client.artifact(served.seeded.succeeded, "../stageflow.db")


def test_nodes(served: Served) -> None:
    served.backend.nodes.beat("node-1")
    assert [(node.name, node.alive) for node in served.client.nodes()] == [("node-1", True)]


def test_the_servers_words_arrive(served: Served) -> None:
    with pytest.raises(ApiProblem, match="no run 999") as caught:
        served.client.run(999)
    assert caught.value.advice
    spec = served.client.run(served.seeded.succeeded).spec
    with pytest.raises(ApiProblem, match="epochs is 0") as caught:
        served.client.submit(replace(spec, epochs=0))
    assert caught.value.status == 422


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ServerUnreachable, match="no answer"):
        Client("http://127.0.0.1:9").nodes()


def test_every_form_goes_in_and_comes_out_as_it_was(served: Served) -> None:
    archive = io.BytesIO()
    graph = {"graph": {"nodes": [1], "tensor_values": {}}, "signature": {"input_specs": []}}
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("net/models/model.json", json.dumps({"graph_module": graph}))
        file.writestr("net/data/weights/weight_0", bytes(range(256)))
    config = '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}'
    for filename, data in {"net.pt2": archive.getvalue(), "config.json": config}.items():
        kept = served.client.add_definition(data, filename, "over http")
        back = served.client.definition_file(kept.id)
        assert back == (data if isinstance(data, bytes) else data.encode())


def test_what_a_run_is_laid_beside(served: Served) -> None:
    run = served.seeded.succeeded
    found = served.client.expected(run)
    assert found == served.backend.runs.expected(served.backend.runs.get(run))
    assert found.prediction == served.backend.plans.get(served.seeded.plan).prediction
    assert served.client.expected(served.seeded.profiled).prediction is None
    assert served.client.watched_in_vain(run) is None


def test_traces_of_a_training_elsewhere(served: Served, tmp_path: Path) -> None:
    step = tmp_path / "step.json"
    step.write_bytes(on_a_gpu())
    packed = tmp_path / "step.json.gz"
    packed.write_bytes(gzip.compress(on_a_gpu()))
    for file in (step, packed):
        kept = served.client.import_profile(served.seeded.definition, file, 32)
        assert [layer.name for layer in kept.profile.layers] == ["first", "second"]
        assert served.client.profile(kept.id) == kept
    with pytest.raises(ApiProblem, match="how many samples"):
        served.client.import_profile(served.seeded.definition, step)
    ranks = [tmp_path / f"rank{number}.json" for number in range(2)]
    for number, file in enumerate(ranks):
        file.write_bytes(rank(number, "forward 0", "forward 1", "backward 0", "backward 1"))
    found = served.client.compare_traces(served.seeded.plan, ranks)
    assert [one.rank for one in found.ranks] == [0, 1]
    assert found.makespan == pytest.approx(350e-6)
    with pytest.raises(ApiProblem, match="1 traces for a plan of 2"):
        served.client.compare_traces(served.seeded.plan, ranks[:1])
