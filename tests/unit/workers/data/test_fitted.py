"""Words and gaps in tables, by what the samples to train on have."""

from pathlib import Path

import pytest
import torch

from backend.runs.request.sample_specs import TableSpec
from backend.runs.request.spec import DataSpec
from workers.data.catalog import load
from workers.data.errors import DataFailed
from workers.data.split import DataSet
from workers.definitions.loader import load as load_definition

TRAIN = "colour,size,kind\nred,1.0,oak\nblue,3.0,ash\nred,,oak\n"
TEST = "colour,size,kind\ngreen,5.0,ash\n,2.0,oak\n"
ONE = "torch.rand(n, {width}), torch.zeros(n, dtype=torch.long)"
TWO = "(torch.rand(n, 1), torch.zeros(n, 1, dtype=torch.long)), torch.zeros(n, dtype=torch.long)"
NAMED = "{{'kinds': torch.zeros(n, 1, dtype=torch.long), 'sizes': torch.rand(n, 1)}}, torch.ones(n)"


@pytest.fixture
def loaded(tmp_path: Path):
    """The table of both files, for a model whose example is as written."""

    def made(example: str, train: str = TRAIN, test: str = TEST, **more) -> DataSet:
        for name, text in (("train", train), ("test", test)):
            (tmp_path / "table").mkdir(exist_ok=True)
            (tmp_path / "table" / f"{name}.csv").write_text(text)
        file = tmp_path / "model.py"
        file.write_text(f"import torch\ndef model(): ...\ndef example(n): return {example}\n")
        place = str(tmp_path / "table")
        spec = DataSpec("csv", path=place, table=TableSpec(**({"fill": True} | more)))
        return load(spec, load_definition(file), place)

    return made


def inputs(part):
    return part.inputs(torch.arange(len(part)))


def test_words_are_columns_of_one_and_zero_with_one_for_what_training_has_not(loaded) -> None:
    data = loaded(ONE.format(width=4))
    assert inputs(data.train).tolist() == [[0, 0, 1, 1], [0, 1, 0, 3], [0, 0, 1, 2]]
    assert inputs(data.held_out).tolist() == [[1, 0, 0, 5], [1, 0, 0, 2]]
    assert data.train.targets(torch.arange(3)).tolist() == [1, 0, 1]
    assert "colour: 3 categories" in data.notes[0]


def test_words_are_numbers_where_the_model_takes_whole_ones(loaded) -> None:
    data = loaded(TWO)
    sizes, kinds = inputs(data.train)
    assert (sizes.tolist(), kinds.tolist()) == ([[1], [3], [2]], [[2], [1], [2]])
    assert inputs(data.held_out)[1].tolist() == [[0], [0]]
    named = inputs(loaded(NAMED.replace("{{", "{").replace("}}", "}")).train)
    assert named["kinds"].tolist() == [[2], [1], [2]]


def test_fractions_are_standardised_by_the_samples_to_train_on(loaded) -> None:
    data = loaded(TWO, standard=True)
    assert inputs(data.train)[0].tolist() == [[-1], [1], [0]]  # 1 and 3; the gap gets the mean
    assert inputs(data.held_out)[0].tolist() == [[3], [0]]


@pytest.mark.parametrize(
    ("example", "more", "said"),
    [
        (ONE.format(width=4), {"fill": False}, "'size' has 1 empty cell of 5.*"),
        (ONE.format(width=9), {}, "gives 4 values per sample"),
        ("torch.zeros(n, 1, dtype=torch.long), torch.ones(n)", {}, "takes 1 input"),
        (TWO, {"train": "colour,size,kind\nred,,oak\n"}, "'size' has no number in the samples"),
    ],
)
def test_what_does_not_fit_is_refused_with_advice(loaded, example: str, more, said: str) -> None:
    with pytest.raises(DataFailed, match=said) as caught:
        loaded(example, **more)
    assert caught.value.advice
