"""The mains as the supervisor starts them: what they print, write, and how they end."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

import workers.zoo
from backend.codec import from_json
from backend.pipeline.columns import decode
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.profiles.profile import Profile
from backend.runs.events import (
    HELD_OUT_LOSS,
    Artifact,
    Finished,
    Metrics,
    ProfileReady,
    RankError,
    Spans,
    Started,
)
from backend.runs.request.spec import DataSpec, ProfileSpec
from workers.data.catalog import load as load_data
from workers.definitions.loader import load

pytestmark = pytest.mark.slow
RUNTIME, PROFILER = "workers.runtime.main", "workers.profiler.main"
ZOO = Path(workers.zoo.__file__).parent


def of(kind, found):
    return [event for event in found if isinstance(event, kind)]


def metric(found, name: str) -> list[float]:
    return [value for event in of(Metrics, found) if event.name == name for value in event.values]


def test_two_stages_of_a_residual_network(write_job, train_spec, ended, tmp_path: Path) -> None:
    spec = train_spec(0, 20, 54, epochs=2, target_accuracy=0.2)
    codes, found, text = ended(write_job("resnet_digits", spec), size=2)
    assert codes == [0, 0], text
    assert {event.rank for event in of(Started, found)} == {0, 1}
    epochs = {event.epochs for event in of(Finished, found)}
    assert epochs == {len(metric(found, "accuracy"))}
    assert "Each epoch trains on 1424 of 1437 samples" in text
    assert [file.name for file in tmp_path.glob("*.safetensors*")] == ["model.safetensors"]
    _losses_are_numbered(found)
    _saved_model_is_as_good_as_reported(tmp_path, metric(found, "accuracy")[-1])
    _spans_are_those_of_the_program(found, Shape((1, 1), 89))


def _losses_are_numbered(found) -> None:
    steps = [step for event in of(Metrics, found) if event.name == "loss" for step in event.steps]
    assert steps == list(range(89 * (1 + max(event.epoch for event in of(Metrics, found)))))


def _saved_model_is_as_good_as_reported(
    folder: Path, accuracy: float, model: str = "resnet_digits"
) -> None:
    definition = load(ZOO / f"{model}.py")
    trained = definition.model(seed=5)
    trained.load_state_dict(load_file(folder / "model.safetensors"))
    part = load_data(DataSpec(), definition).held_out
    images, labels = part.all_inputs, part.all_targets
    with torch.no_grad():
        matches = trained.eval()(images).argmax(-1) == labels
    assert abs(float(matches.float().mean()) - accuracy) < 1 / len(labels)


def _spans_are_those_of_the_program(found, shape: Shape) -> None:
    program = lower(schedule("pipedream"), shape)
    spans = {}
    for event in of(Spans, found):
        if event.segment == 0 and event.kind == "measured":
            spans[event.rank] = decode(Path(event.path).read_bytes()).spans
            assert len(spans[event.rank]) == event.num_spans
    for rank, actions in enumerate(program.ranks):
        assert tuple(span.action for span in spans[rank]) == actions
        assert [span.index for span in spans[rank]] == list(range(len(actions)))
        times = [time for span in spans[rank] for time in (span.start, span.end)]
        assert times == sorted(times)
        assert times[0] >= 0


def test_replicas_evaluate_with_the_same_statistics(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    spec = train_spec(0, 54, replicas=2, schedule="1f1b-flush", epochs=1)
    codes, found, text = ended(write_job("resnet_digits", spec), 2)
    assert codes == [0, 0], text
    _saved_model_is_as_good_as_reported(tmp_path, metric(found, "accuracy")[-1])
    assert len(metric(found, "loss")) == 88


def test_one_process_without_any_environment(write_job, train_spec, ended) -> None:
    spec = train_spec(0, 8, schedule="gpipe", epochs=1, rate=0.05)
    codes, found, text = ended(write_job("mlp", spec))
    assert codes == [0], text
    assert len(metric(found, "loss")) == 89
    assert len(metric(found, "throughput")) == 1
    assert {event.name for event in of(Artifact, found)} == {"model.safetensors"}


def test_bfloat16_across_a_cut(write_job, train_spec, ended, tmp_path: Path) -> None:
    spec = train_spec(0, 4, 8, schedule="1f1b-flush", epochs=3, precision="bfloat16")
    codes, found, text = ended(write_job("mlp", spec), 2)
    assert codes == [0, 0], text
    losses = metric(found, "loss")
    assert sum(losses[-20:]) < sum(losses[:20]) / 2
    saved = load_file(tmp_path / "model.safetensors").values()
    assert {tensor.dtype for tensor in saved} == {torch.float32}


def test_pipelines_keep_a_reference_that_is_as_good_as_reported(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    spec = train_spec(0, 4, 8, schedule="afp", epochs=3)
    spec = replace(spec, plan=replace(spec.plan, num_pipelines=2, batch=2, recompute=True))
    codes, found, text = ended(write_job("mlp", spec), 4)
    assert codes == [0] * 4, text
    _saved_model_is_as_good_as_reported(tmp_path, metric(found, "accuracy")[-1], "mlp")
    assert metric(found, "accuracy")[-1] > 0.5


def test_torchrun_starts_it_too(write_job, train_spec) -> None:
    job = write_job("mlp", train_spec(0, 4, 8, epochs=1))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", RUNTIME, str(job)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('{"event":"finished"') == 2


DEFINITION = """
def model():
    return nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(16, 3))
def example(batch):
    return torch.randint(10, (batch, 2)), torch.randint(3, (batch,))
"""


def test_a_loss_that_is_no_number(write_job, train_spec, ended) -> None:
    text = DEFINITION + "def loss(o, t): return o.log().sum()\n"
    codes, found, _ = ended(write_job(text, train_spec(0, 3, epochs=2)))
    assert codes == [1]
    (failure,) = of(RankError, found)
    assert failure.kind == "LossNotFinite"
    assert "The loss of minibatch 0 (epoch 1) is nan." in failure.message
    assert "learning rate" in failure.advice


def test_a_sample_that_the_model_does_not_take(write_job, train_spec, ended) -> None:
    bad = "def data():\n    x = torch.zeros(64, 2, dtype=torch.long); x[40:] = 77\n"
    bad += "    return (x, x[:, 0] % 3), (x[:8], x[:8, 0])\n"
    codes, found, _ = ended(write_job(DEFINITION + bad, train_spec(0, 3)))
    assert codes == [1]
    (failure,) = of(RankError, found)
    assert failure.kind == "ModelRaised"
    assert "index out of range" in failure.message
    assert "stage 0, layer 0" in failure.message


def test_a_failure_on_one_rank_ends_the_other(write_job, train_spec, ended) -> None:
    text = DEFINITION + "def loss(o, t): return o.log().sum()\n"
    codes, found, _ = ended(write_job(text, train_spec(0, 1, 3)), size=2)
    assert codes == [1, 1]
    kinds = {event.rank: event.kind for event in of(RankError, found)}
    assert kinds[1] == "LossNotFinite"
    assert kinds[0] == "PeerLost"


@pytest.mark.parametrize(
    ("layers", "message"), [(7, "the plan is for 7 layers, but the model has 8")]
)
def test_a_plan_for_another_model(write_job, train_spec, ended, layers: int, message: str) -> None:
    codes, found, _ = ended(write_job("mlp", train_spec(0, layers)))
    assert codes == [1]
    assert message in of(RankError, found)[0].message


def test_nothing_held_out_means_no_accuracy(write_job, train_spec, ended) -> None:
    own = "def data():\n    return example(64), example(0)\n"
    spec = train_spec(0, 3, epochs=2, target_accuracy=0.0)
    codes, found, text = ended(write_job(DEFINITION + own, spec), 1)
    assert codes == [0], text
    assert metric(found, "accuracy") == []
    assert of(Finished, found) == [Finished(0, 2)]


def test_a_target_loss_ends_the_run_at_the_first_evaluation_that_is_below(
    write_job, train_spec, ended
) -> None:
    """The same run with a target that it does not meet tells what the losses will be."""
    spec = train_spec(0, 4, 8, epochs=3, target_loss=1e-9)
    _, whole, _ = ended(write_job("mlp", spec), 2)
    losses = metric(whole, HELD_OUT_LOSS)
    assert len(losses) == 3
    assert losses[2] < losses[0]
    first = next(number for number, loss in enumerate(losses) if loss <= losses[1])
    spec = train_spec(0, 4, 8, epochs=3, target_loss=losses[1])
    _, found, text = ended(write_job("mlp", spec), 2)
    assert metric(found, HELD_OUT_LOSS) == losses[: first + 1], text


def test_too_little_data(write_job, train_spec, ended) -> None:
    spec = train_spec(0, 3, samples=8)
    codes, found, _ = ended(write_job(DEFINITION, spec))
    assert codes == [1]
    assert (
        "8 training samples of synthetic are fewer than one round"
        in of(RankError, found)[0].message
    )


def test_a_profile(write_job, ended) -> None:
    codes, found, text = ended(write_job("mlp", ProfileSpec(1, 4, 3)), module=PROFILER)
    assert codes == [0], text
    (ready,) = of(ProfileReady, found)
    profile: Profile = from_json(Profile, Path(ready.path).read_bytes())
    assert len(profile.layers) == 8
    assert of(Finished, found) == [Finished(0, 0)]


def test_a_profile_of_a_factory_that_raises(write_job, ended) -> None:
    text = "def model():\n    raise ValueError('no width')\nDATA = 'digits'\n"
    codes, found, _ = ended(write_job(text, ProfileSpec(1, 4, 3)), module=PROFILER)
    assert codes == [1]
    (failure,) = of(RankError, found)
    assert failure.kind == "DefinitionFailed"
    assert "mine.py, line 4: ValueError: no width" in failure.message
    assert "raise ValueError" in failure.detail


def _until_started(process: subprocess.Popen[str]) -> None:
    for line in process.stdout:
        if '"started"' in line:
            return
    raise AssertionError("it ended before it started")


def test_sigterm_ends_a_rank(write_job, train_spec) -> None:
    job = write_job("mlp", train_spec(0, 8, epochs=10_000))
    command = [sys.executable, "-m", RUNTIME, str(job)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _until_started(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == -signal.SIGTERM
    process.stdout.close()


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "workers.runtime.main", sys.argv[1]])
print("child", child.pid, flush=True)
child.wait()
"""


def test_a_rank_dies_with_its_parent(write_job, train_spec) -> None:
    job = write_job("mlp", train_spec(0, 8, epochs=10_000))
    command = [sys.executable, "-c", PARENT, str(job)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline().split()[1]))
    _until_started(parent)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 120
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the rank outlived its parent"
        time.sleep(0.05)
    parent.stdout.close()
