"""Which files of the machine a run may read, and which of them its ranks see."""

import os
from pathlib import Path

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.job import Job
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from backend.runs.request.text_spec import TextSpec
from backend.settings import Settings
from workers.supervisor.setup.data_place import (
    DataNotAllowed,
    hub_name,
    place_of,
    shown_of,
    tokenizer_place,
    weights_place,
)

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 16)


def train(path: str, name: str = "csv") -> TrainSpec:
    return TrainSpec(1, PLAN, data=DataSpec(name, path=path))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Two open folders with a file each, and one that is not open."""
    for folder in ("one", "two", "secret"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.csv").touch()
    opened = os.pathsep.join(str(tmp_path / folder) for folder in ("one", "two"))
    return Settings(home=tmp_path / "home", data=opened, node="here")


@pytest.mark.parametrize("path", ["two.csv", "{top}/two/two.csv", "../two/two.csv", "{top}/two"])
def test_what_lies_in_an_open_folder_is_found(path: str, settings: Settings, tmp_path: Path):
    place = Path(place_of(train(path.format(top=tmp_path)), settings))
    assert place in (tmp_path / "two", tmp_path / "two" / "two.csv")


@pytest.mark.parametrize(
    "path",
    ["secret.csv", "../secret/secret.csv", "{top}/secret/secret.csv", "none.csv", "link.csv"],
)
def test_all_else_is_refused(path: str, settings: Settings, tmp_path: Path):
    (tmp_path / "one" / "link.csv").symlink_to(tmp_path / "secret" / "secret.csv")
    with pytest.raises(DataNotAllowed, match="that here allows runs to read") as raised:
        place_of(train(path.format(top=tmp_path)), settings)
    assert str(tmp_path / "one") in raised.value.advice


def test_a_tokenizer_lies_in_an_open_folder_too(settings: Settings, tmp_path: Path):
    def spec(path: str) -> TrainSpec:
        return TrainSpec(1, PLAN, data=DataSpec(text=TextSpec(path)))

    (tmp_path / "one" / "words").mkdir()
    place = tokenizer_place(spec("words"), settings)
    assert place == str(tmp_path / "one" / "words")
    assert tokenizer_place(spec(""), settings) == tokenizer_place(ProfileSpec(1), settings) == ""
    with pytest.raises(DataNotAllowed):
        tokenizer_place(spec("../secret"), settings)
    job = Job(1, 1, "a", spec("words"), "", "", tokenizer=place)
    assert shown_of(job) == (Path(place),)


def test_a_node_opens_nothing_by_itself(tmp_path: Path):
    with pytest.raises(DataNotAllowed) as raised:
        place_of(train("a.csv"), Settings(home=tmp_path, data=""))
    assert "STAGEFLOW_DATA" in raised.value.advice


def test_runs_without_files_need_none(settings: Settings):
    assert place_of(ProfileSpec(1), settings) == ""
    assert place_of(TrainSpec(1, PLAN), settings) == ""


def test_the_hub_is_asked_for_what_is_no_folder_here(settings: Settings, tmp_path: Path):
    (tmp_path / "one" / "mnist").mkdir()
    assert hub_name(train("mnist", "huggingface"), settings) is None
    assert hub_name(train("stanfordnlp/imdb", "huggingface"), settings) == "stanfordnlp/imdb"
    assert hub_name(train("stanfordnlp/imdb", "csv"), settings) is None
    assert hub_name(train("../../etc/passwd", "huggingface"), settings) is None
    place = place_of(train("stanfordnlp/imdb", "huggingface"), settings)
    assert place == str(tmp_path / "home" / "hub" / "stanfordnlp" / "imdb")


class TestWeights:
    def spec(self, path: str) -> TrainSpec:
        return TrainSpec(1, PLAN, weights_path=path)

    def test_a_folder_is_shown_with_what_its_links_lead_to(self, settings: Settings, tmp_path):
        base, blob = tmp_path / "one" / "base", tmp_path / "two" / "blob"
        base.mkdir()
        blob.touch()
        (base / "model.safetensors").symlink_to(blob)
        place = weights_place(self.spec("base"), settings)
        assert place == str(base)
        job = Job(1, 1, "x", self.spec("base"), "/x.py", "/work", weights=place)
        assert shown_of(job) == (base, blob)

    def test_a_link_that_leads_out_is_refused(self, settings: Settings, tmp_path: Path):
        (tmp_path / "one" / "base").mkdir()
        link = tmp_path / "one" / "base" / "model.safetensors"
        link.symlink_to(tmp_path / "secret" / "secret.csv")
        with pytest.raises(DataNotAllowed, match=r"model.safetensors is not in a folder"):
            weights_place(self.spec("base"), settings)

    @pytest.mark.parametrize("path", ["../secret", "none", "{top}/secret"])
    def test_all_else_is_refused(self, path: str, settings: Settings, tmp_path: Path):
        with pytest.raises(DataNotAllowed):
            weights_place(self.spec(path.format(top=tmp_path)), settings)

    def test_weights_that_were_uploaded_need_no_place(self, settings: Settings):
        assert weights_place(self.spec(""), settings) == weights_place(ProfileSpec(1), settings)
        job = Job(1, 1, "x", self.spec(""), "/x.py", "/work", weights="/work/w.safetensors")
        assert shown_of(job) == ()


def test_a_python_file_comes_with_the_folder_around_it(tmp_path: Path):
    file = tmp_path / "mine.py"
    job = Job(1, 1, "x", train("mine.py", "python"), "/x.py", "/work", data=str(file))
    assert shown_of(job) == (tmp_path,)
    job = Job(1, 1, "x", train("mine.csv"), "/x.py", "/work", data=str(tmp_path / "mine.csv"))
    assert shown_of(job) == (tmp_path / "mine.csv",)
    assert shown_of(Job(1, 1, "x", TrainSpec(1, PLAN), "/x.py", "/work")) == ()
