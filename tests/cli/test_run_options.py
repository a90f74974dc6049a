"""What `stageflow run` asks for, as it is stored."""

from pathlib import Path

from backend.bootstrap import connect
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.sample_specs import PictureSpec, TableSpec
from backend.runs.request.spec import DataSpec, StopSpec, TrainSpec
from backend.runs.request.text_spec import TextSpec
from backend.settings import Settings
from tests.app.seed import a_profile, plan_for
from tests.cli.conftest import Command


def test_evaluations_and_the_end_of_a_run(stageflow: Command, database: None, home: Path) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id, None))
    words = "--evaluate 50 --patience 5 --watch f1 --max-updates 700 --max-seconds 90".split()
    refused = stageflow("run", "--plan", str(plan.id), *words, "--detach")
    assert refused.code == 1
    assert "it is not known which values of 'f1' are better" in refused.err
    words += ["--better", "larger", "--keep-best", "--detach", "--json"]
    queued = stageflow("run", "--plan", str(plan.id), *words).json
    spec = backend.runs.get(queued["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert (spec.evaluate, spec.stop) == (50, StopSpec(5, "f1", "larger", 700, 90.0))
    assert spec.checkpoints.best


def test_texts_pictures_and_tables(stageflow: Command, database: None, home: Path) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id, None))
    (home / "chat.jinja").write_text("{{ messages }}")
    words = f"run --plan {plan.id} --detach --json --data jsonl:talk.jsonl --tokenizer gpt".split()
    refused = stageflow(*words, "--packing", "--task", "seq2seq")
    assert refused.code == 1
    assert "packed samples are all of one length" in refused.err
    words += ["--answers-only", "--packing", "--template", str(home / "chat.jinja")]
    words += ["--augment", "crop=4, flip", "--normalise", "0.5/0.25"]
    assert "data of texts have no columns to fill" in stageflow(*words, "--fill").err
    spec = backend.runs.get(stageflow(*words).json["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert spec.data == DataSpec(
        "jsonl",
        path="talk.jsonl",
        text=TextSpec("gpt", "causal", True, True, "{{ messages }}"),
        pictures=PictureSpec(4, True, mean=(0.5,), deviation=(0.25,)),
    )
    table = f"run --plan {plan.id} --detach --json --fill --standardise --data".split()
    assert "'digits' have no columns to fill or standardise" in stageflow(*table, "digits").err
    spec = backend.runs.get(stageflow(*table, "csv:leaves.csv").json["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert spec.data == DataSpec("csv", path="leaves.csv", table=TableSpec(True, True))


def test_how_weights_are_updated(stageflow: Command, database: None, home: Path) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id, None))
    begin = ("run", "--plan", str(plan.id), "--detach", "--json")
    for words, said in (
        ("--group head", "'head' is not a group of weights"),
        ("--betas 0.9", "betas of '0.9' are not two numbers"),
        ("--optimizer sgd --betas 0.9,0.99", "SGD with betas 0.9 and 0.99"),
        ("--clip 1", "Clip by each stage's own norm"),
    ):
        assert said in " ".join(stageflow(*begin, *words.split()).err.split())
    words = "--optimizer adamw --lr 0.002 --betas 0.9,0.95 --eps 1e-6 --weight-decay 0.1 "
    words += "--group head=10 --group *.bias=2,0 --clip 1 --clip-by stage --decay one-cycle "
    words += "--warm-up-updates 50 --ema 0.999"
    spec = backend.runs.get(stageflow(*begin, *words.split()).json["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert spec.optimizer == OptimizerSpec(
        "adamw",
        0.002,
        weight_decay=0.1,
        clip_norm=1.0,
        decay="one-cycle",
        warm_up_updates=50,
        betas=(0.9, 0.95),
        eps=1e-6,
        decayed="matrices",
        groups=(ParameterGroup("head", 10.0), ParameterGroup("*.bias", 2.0, 0.0)),
        ema=0.999,
        clip_by="stage",
    )


def test_a_run_has_the_state_that_its_plan_was_made_for(
    stageflow: Command, database: None, home: Path
) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    profile = backend.profiles.add(a_profile(), definition.id, None)
    made = "--optimizer adamw --ema --state-precision bfloat16-masters --planner straight"
    asked = ("plan", "--profile", str(profile.id), "--devices", "2", *made.split())
    plan = stageflow(*asked, "--save", "--json").json["plan_id"]
    begin = ("run", "--plan", str(plan), "--detach", "--json")
    specs = []
    for words in ("", "--optimizer sgd --ema 0 --state-precision float32 --precision float32"):
        spec = backend.runs.get(stageflow(*begin, *words.split()).json["id"]).spec
        assert isinstance(spec, TrainSpec)
        specs.append(spec)
    planned, chosen = specs
    assert planned.optimizer == OptimizerSpec("adamw", 0.001, ema=0.999)
    assert (planned.state_precision, planned.precision) == ("bfloat16-masters", "bfloat16")
    assert (chosen.optimizer.name, chosen.optimizer.ema) == ("sgd", 0.0)
    assert chosen.optimizer.learning_rate == 0.01
    assert (chosen.state_precision, chosen.precision) == ("float32", "float32")


def test_values_of_settings_become_a_sweep(stageflow: Command, database: None, home: Path) -> None:
    backend = connect(Settings(home=home))
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id, None))
    run = ("run", "--plan", str(plan.id), "--epochs", "3")
    assert "no setting 'rate'" in stageflow(*run, "--vary", "rate=1,2").err
    varied = ("--vary", "lr=log:0.001:0.1", "--vary", "batch=1", "--draws", "3", "--stop-behind")
    started = stageflow(*run, *varied, "--grace", "4", "--name", "rates", "--json").json
    (listed,) = stageflow("sweep", "list", "--json").json
    assert (listed["id"], listed["name"]) == (started["id"], "rates")
    assert [each["run_id"] for each in listed["runs"]] == started["runs"]
    assert len(started["runs"]) == 3
    early = backend.sweeps.get(started["id"]).sweep.spec.early
    assert (early.median, early.first, early.grace) == (True, False, 4)
    assert "0 of 3 ended" in stageflow("sweep", "show", str(started["id"])).out
    assert "3 of 3 ended" in stageflow("sweep", "cancel", str(started["id"])).err
