"""Contract: every form of data gives the samples that its files hold, and says what is wrong."""

import os
from pathlib import Path

import pytest
import torch

from backend.runs.request.data_forms import FORMS
from backend.runs.request.spec import DataSpec
from tests.contract.data_cases import (
    LABELS,
    MAKERS,
    MODEL,
    NUM_SAMPLES,
    PICTURES,
    PIXELS,
    SIDE,
    TOKENS,
)
from workers.data.catalog import CATALOG, NO_FILE, load
from workers.data.errors import DataFailed
from workers.data.split import DataSet, Split
from workers.definitions.loader import load as load_definition

FILES = sorted(MAKERS)


@pytest.fixture
def define(tmp_path: Path):
    """A model for the samples of a form."""

    def defined(name: str):
        (tmp_path / "model.py").write_text(TOKENS if name == "text" else MODEL)
        return load_definition(tmp_path / "model.py")

    return defined


@pytest.fixture
def make(tmp_path: Path, define):
    """Load a form from the files that its maker writes."""

    def made(name: str, **more) -> DataSet:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        place = MAKERS[name](folder)
        spec = DataSpec(name, path=str(place), length=8, **more)
        return load(spec, define(name), str(place))

    return made


def everything(part: Split) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.arange(len(part))
    return part.inputs(numbers), part.targets(numbers)


def test_every_form_is_loaded_and_tried() -> None:
    assert CATALOG.keys() == FORMS.keys()
    assert CATALOG.keys() - set(NO_FILE) == MAKERS.keys()
    assert {name for name, form in FORMS.items() if form.path} == MAKERS.keys()


@pytest.mark.parametrize("name", PICTURES)
def test_the_samples_are_those_of_the_files_in_the_models_shape(name: str, make) -> None:
    inputs, targets = everything(make(name, held_out=0.0).train)
    assert (inputs.shape, inputs.dtype) == ((NUM_SAMPLES, 1, SIDE, SIDE), torch.float32)
    order = inputs[:, 0, 0, 0].argsort()  # a folder of pictures counts class by class
    expected = torch.from_numpy(PIXELS / 255).float()[:, None]
    assert torch.allclose(inputs[order], expected)
    assert targets[order].tolist() == LABELS
    assert targets.dtype == torch.long


def test_text_is_the_next_byte(make) -> None:
    inputs, targets = everything(make("text", held_out=0.0).train)
    assert inputs.shape == targets.shape
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    assert inputs.flatten()[:80].tolist() == list(range(32, 112))


@pytest.mark.parametrize("name", FILES)
def test_a_share_is_held_out_and_is_always_the_same(name: str, make) -> None:
    one, two = make(name, held_out=0.25), make(name, held_out=0.25)
    assert abs(one.num_held_out - (one.num_train + one.num_held_out) / 4) <= 1
    for mine, theirs in ((one.train, two.train), (one.held_out, two.held_out)):
        assert all(map(torch.equal, everything(mine), everything(theirs)))
    if name != "text":
        seen = [everything(part)[0][:, 0, 0, 0].tolist() for part in (one.train, one.held_out)]
        assert not set(seen[0]) & set(seen[1])
        assert len(seen[0]) + len(seen[1]) == NUM_SAMPLES


@pytest.mark.parametrize("name", FILES)
def test_any_samples_come_in_the_order_asked_for(name: str, make) -> None:
    part = make(name).train
    numbers = torch.tensor([3, 0, 7, 3])
    inputs, targets = everything(part)
    assert torch.equal(part.inputs(numbers), inputs[numbers])
    assert torch.equal(part.targets(numbers), targets[numbers])


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_there_is_named(name: str, define, tmp_path: Path) -> None:
    place = str(tmp_path / "nowhere")
    with pytest.raises(DataFailed, match="nowhere does not exist") as raised:
        load(DataSpec(name, path=place), define(name), place)
    assert raised.value.advice


@pytest.mark.parametrize("name", FILES)
def test_a_path_is_needed(name: str, define) -> None:
    with pytest.raises(DataFailed, match="need a path"):
        load(DataSpec(name), define(name))


@pytest.mark.parametrize("name", sorted(set(FILES) - {"images", "text"}))
def test_what_is_broken_is_named(name: str, make, define, tmp_path: Path) -> None:
    make(name)
    for file in (tmp_path / name).rglob("*.*"):
        file.write_bytes(b"\x00not what it says\xff")
    place = next(iter((tmp_path / name).iterdir()))
    with pytest.raises(DataFailed) as raised:
        load(DataSpec(name, path=str(place)), define(name), str(place))
    assert place.stem in str(raised.value)


@pytest.mark.parametrize("name", ["numpy", "parquet", "csv", "huggingface"])
def test_unknown_columns_are_named_with_those_there_are(name: str, make) -> None:
    with pytest.raises(DataFailed, match="colour") as raised:
        make(name, inputs=("colour",))
    assert "label" in raised.value.advice or "y" in raised.value.advice


@pytest.mark.parametrize("name", ["parquet", "csv", "huggingface"])
def test_columns_that_do_not_make_the_models_input_are_refused(name: str, make) -> None:
    with pytest.raises(DataFailed, match=r"gives 1 values per sample.*has 4 \(1x2x2\)"):
        make(name, inputs=("label",), targets=("label",))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told_apart_from_what_is_missing(define, tmp_path) -> None:
    place = MAKERS["csv"](tmp_path)
    place.chmod(0)
    with pytest.raises(DataFailed, match="cannot be read"):
        load(DataSpec("csv", path=str(place)), define("csv"), str(place))


def test_data_of_another_kind_of_model_are_refused(define, tmp_path: Path) -> None:
    place = MAKERS["text"](tmp_path)
    with pytest.raises(DataFailed, match="gives 8 values per sample"):
        load(DataSpec("text", path=str(place), length=8), define("csv"), str(place))
