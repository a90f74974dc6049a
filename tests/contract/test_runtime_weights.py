"""Contract: after k updates by real processes, every weight is what the versions say."""

from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from backend.codec import to_json
from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import CODECS
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.prediction.cut_messages import CutMessages
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.runs.events import SENT, SENT_PLAIN
from backend.runs.job import Job
from tests.contract.launching import launch, losses_by_case
from tests.contract.runtime_cases import (
    CASES,
    EPOCHS,
    FACTORS,
    HERE,
    MICROBATCH,
    SEED,
    SHAPES,
    USUAL,
    Case,
    definition_of,
    fits,
)
from tests.contract.runtime_matrix import covering
from tests.contract.runtime_reference import reference
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.definitions.layering import layered
from workers.profiler.described import graph_of
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.samples.epoch import Epoch

pytestmark = pytest.mark.timeout(1800)  # the first test waits for all cases


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Every case run by real gloo processes: the folder of all, and what was printed."""
    root, lines = tmp_path_factory.mktemp("cases"), []
    for size in sorted({case.num_ranks for case in CASES}):
        cases = [case for case in CASES if case.num_ranks == size]
        lines += launch([job_of(root, case) for case in cases], size)
    return root, lines


@pytest.fixture(scope="module")
def trained(told: tuple[Path, list[str]]) -> dict[str, tuple[Path, list[float]]]:
    """The folder of every case, and the losses that were printed."""
    root, lines = told
    losses = losses_by_case(lines)
    return {case.name: (root / case.name, losses[case.name]) for case in CASES}


@pytest.fixture(scope="module")
def sent(told: tuple[Path, list[str]]) -> dict[str, dict[str, list[float]]]:
    """The bytes that were counted between stages, coded and as if plain, of every case."""
    return {name: losses_by_case(told[1], name) for name in (SENT, SENT_PLAIN)}


def job_of(root: Path, case: Case) -> Path:
    folder = root / case.name
    folder.mkdir()
    file = HERE / "models" / f"{case.model}.py"
    job = Job(1, 1, case.name, case.spec(), str(file), str(folder), case.num_ranks)
    (folder / "job.json").write_bytes(to_json(Job, job))
    return folder / "job.json"


def distance(saved: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference; running statistics are saved too, but not compared."""
    assert expected.keys() <= saved.keys()
    return max(float((saved[name] - expected[name]).abs().max()) for name in expected)


def test_every_schedule_that_runs_is_held_to_the_reference() -> None:
    """Those with local losses by `test_local_losses`, which has their heads."""
    runs = {each.name for each in SCHEDULES.values() if each.executable and not each.local}
    assert runs - {"forward-only"} <= {case.schedule for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    "name", ["optimizer", "extra", "recompute", "num_pipelines", "batch", "last", "sharded"]
)
def test_every_value_meets_every_schedule_that_it_goes_together_with(name: str) -> None:
    met = {(case.schedule, getattr(case, name)) for case in CASES}
    for schedule in FACTORS["schedule"]:
        for value in FACTORS[name]:
            if not any(
                fits({**USUAL, "schedule": schedule, name: value, "replicas": r, "chunks": c})
                for r in SHAPES
                for c in FACTORS["chunks"]
            ):
                continue
            assert (schedule, value) in met


def test_rows_cover_every_pair_that_fits() -> None:
    factors = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1, 2), "d": (0, 1)}

    def fits(row) -> bool:
        return not {"a", "b"} <= row.keys() or row["a"] + row["b"] < 4

    rows = covering(factors, fits)
    assert all(fits(row) and row.keys() == factors.keys() for row in rows)
    for one, other in combinations(factors, 2):
        met = {(row[one], row[other]) for row in rows}
        possible = {(x, y) for x in factors[one] for y in factors[other]}
        assert met == {pair for pair in possible if (one, other) != ("a", "b") or sum(pair) < 4}
    assert len(rows) < 3 * 3 * 3 * 2 / 2


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_weights_and_losses_are_those_of_the_versions(case: Case, trained) -> None:
    folder, losses = trained[case.name]
    expected = reference(case)
    is_loose = case.schedule == "pipedream-naive"  # it enlarges rounding
    close = 1e-7 if is_loose or case.is_rounded else 1e-10  # a last bit of a float32
    assert distance(load_file(folder / "model.safetensors"), expected.weights) < close
    assert losses == pytest.approx(expected.losses, rel=1e-6)


FROZEN = [case for case in CASES if case.model == "lora"]


@pytest.mark.slow
@pytest.mark.parametrize("case", FROZEN, ids=lambda case: case.name)
def test_frozen_weights_are_saved_as_they_began(case: Case, trained) -> None:
    saved = load_file(trained[case.name][0] / "model.safetensors")
    first = seeded(case.definition().model, SEED)
    frozen = {name: p for name, p in first.named_parameters() if not p.requires_grad}
    assert frozen
    assert not [name for name, weight in frozen.items() if not torch.equal(saved[name], weight)]


STALE = [
    case
    for case in CASES
    if len(case.replicas) > 1
    and (case.schedule == "2bw" or "pipedream" in case.schedule)
    and not (case.model == "lora" and "pipedream" in case.schedule and case.num_stages == 2)
]
"""Without those of which the last stage alone is trained, which never reads old weights there."""


@pytest.mark.slow
@pytest.mark.parametrize("case", STALE, ids=lambda case: case.name)
def test_a_reference_that_ignores_versions_is_told_apart(case: Case, trained) -> None:
    folder, _ = trained[case.name]
    current = reference(case, versions_count=False)
    assert distance(load_file(folder / "model.safetensors"), current.weights) > 1e-4


ROUNDED = [case for case in CASES if case.is_rounded and case.optimizer != "sgd"]
OTHERS = {
    "bfloat16": ("bfloat16-masters-state16",),
    "bfloat16-state32": ("bfloat16", "bfloat16-masters"),
    "bfloat16-masters": ("bfloat16-masters-state16",),
    "bfloat16-masters-state16": ("bfloat16",),
    "float32-state16": ("bfloat16-masters-state16",),
}
"""Of each precision of state those that differ in one thing alone. One may show in the last update,
behind the last loss: then the other shows before."""


@pytest.mark.slow
@pytest.mark.parametrize("case", ROUNDED, ids=lambda case: case.name)
def test_a_reference_that_rounds_something_else_is_told_apart(case: Case, trained) -> None:
    folder, losses = trained[case.name]
    others = [reference(replace(case, state=state)) for state in OTHERS[case.state]]
    saved = load_file(folder / "model.safetensors")
    assert all(distance(saved, other.weights) > 1e-5 for other in others)
    assert any(losses != pytest.approx(other.losses, rel=1e-6) for other in others)


CODED = [case for case in CASES if case.codec]


def test_every_codec_is_held_to_the_reference() -> None:
    assert set(CODECS) == set(ROUND_TRIPS) == {case.codec for case in CODED}


@pytest.mark.slow
@pytest.mark.parametrize("case", CODED, ids=lambda case: case.name)
def test_a_reference_that_codes_nothing_is_told_apart(case: Case, trained) -> None:
    plain = reference(replace(case, codec=""))
    assert distance(load_file(trained[case.name][0] / "model.safetensors"), plain.weights) > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("case", CODED, ids=lambda case: case.name)
def test_the_bytes_between_stages_are_those_that_a_prediction_counts(case: Case, sent) -> None:
    """To the byte, of microbatches of every size. Codecs that keep samples send those that come for
    the first time plain."""
    counted, cutting = {SENT: [], SENT_PLAIN: []}, Cutting(MICROBATCH, case.unit, case.is_kept)
    train, _ = case.definition().data()
    passed: set[int] = set()
    for number in range(EPOCHS):
        groups = Epoch.shuffled(TensorSplit(*train), cutting, SEED, number).groups
        every = [set(group.tolist()) for group, _ in groups]
        assert [len(samples) for samples in every] == case.sizes
        crossed = [_crossing(case, len(samples), len(samples - passed)) for samples in every]
        passed = passed.union(*every)
        for name, sizes in zip(counted, zip(*crossed, strict=True), strict=True):
            counted[name].append(sum(sizes))
    for name, expected in counted.items():
        assert sent[name][case.name] == expected
    assert 0 < counted[SENT][-1] < counted[SENT_PLAIN][-1]


def _crossing(case: Case, size: int, new: int) -> tuple[int, int]:
    """Bytes of a microbatch over all cuts, coded and plain."""
    plan, profile = case.spec().plan, profile_of(case.model, size)
    cut_messages = CutMessages(profile, plan.partition, plan.codecs)
    coded = plain = 0
    for cut in filter(plan.partition.crosses, range(case.num_stages - 1)):
        for message in (Message(Flow.ACTIVATION, cut, 0), Message(Flow.GRADIENT, cut + 1, 0)):
            coded += cut_messages.bytes(message)
            plain += cut_messages.plain_bytes(message)
        if CODECS[case.codec].keeps_samples and new:
            coded -= cut_messages.bytes(Message(Flow.ACTIVATION, cut, 0))
            layer, bits = plan.partition.stages[cut].stop - 1, int(case.codec.removeprefix("aq"))
            for tensor in profile.graph.tensors:
                if tensor.producer <= layer < max(tensor.readers):
                    numbers = tensor.bytes // 8 // size * (size - new)
                    coded += tensor.bytes // size * new + 4 * -(-numbers // 256)
                    coded += -(-numbers * bits // 8)
    return coded, plain


@pytest.mark.slow
@pytest.mark.parametrize("case", CODED, ids=lambda case: case.name)
def test_a_saved_model_names_the_codecs_that_are_layers_of_it(case: Case, trained) -> None:
    layers = profile_of(case.model, 2).layers
    crossed = [cut for cut in range(case.num_stages - 1) if case.spec().plan.partition.crosses(cut)]
    behind = [f"{case.codec} behind {layers[case.bounds[cut + 1] - 1].name}" for cut in crossed]
    with safe_open(trained[case.name][0] / "model.safetensors", "pt") as file:
        said = file.metadata()
    expected = {"stageflow_codecs": ", ".join(behind)} if case.codec.startswith("top") else {}
    assert said == {"format": "pt", **expected}


@cache
def profile_of(model: str, microbatch: int) -> Profile:
    """What of the model crosses cuts, at a size of microbatch."""
    definition = definition_of(model)
    train, _ = definition.data()
    found = layered(definition.model(), train[0][:microbatch], "fine")
    layers = (Layer(part.name, part.kind, 0.0, 0.0, 0, 0) for part in found.layers)
    return Profile(model, graph_of(found, layers), microbatch)
