"""What `stageflow run` asks for, as it is stored."""

from pathlib import Path

from backend.bootstrap import connect
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
    assert "nobody knows which values of 'f1' are better" in refused.err
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
    words += ["--augment", "crop=4, flip", "--normalise", "0.5/0.25", "--fill", "--standardise"]
    spec = backend.runs.get(stageflow(*words).json["id"]).spec
    assert isinstance(spec, TrainSpec)
    assert spec.data == DataSpec(
        "jsonl",
        path="talk.jsonl",
        text=TextSpec("gpt", "causal", True, True, "{{ messages }}"),
        pictures=PictureSpec(4, True, mean=(0.5,), deviation=(0.25,)),
        table=TableSpec(True, True),
    )
