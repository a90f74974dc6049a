"""What a page asks is the question that a command asks."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.components.plan.wanted import Wanted, options_text
from app.session.state import Param
from backend.cluster.presets import cluster_a, local
from backend.errors import InvalidInput
from backend.planning.savings import MemorySaving
from backend.prediction.question import Question
from backend.runs.profiles import StoredProfile
from tests.app import seed

CPU = seed.a_profile()
V100 = replace(CPU, device="V100")
HALF = replace(CPU, microbatch=CPU.microbatch // 2)


def stored(profile=CPU, number=1):
    return StoredProfile(number, 1, None, profile, datetime.now(UTC))


def test_by_default_best_is_asked():
    assert Wanted(stored(), local(2)).question == Question(CPU, local(2))


def test_every_field_reaches_the_question():
    wanted = Wanted(
        stored(),
        cluster_a(),
        planner="avgpipe",
        schedule="afp",
        batch=8,
        optimizer="adamw",
        memory=4e9,
        recompute=MemorySaving.ALWAYS,
        shard_state=MemorySaving.NEVER,
        chunks=3,
        pipelines=2,
        took=(0.01, 0.016),
        further=(stored(HALF, 2),),
        state_precision="bfloat16-masters",
        update_times=4,
        run_ahead=0,
        search_on=True,
        averaged=True,
    )
    asked = Question(
        CPU,
        cluster_a(),
        planner="avgpipe",
        schedule="afp",
        batch=8,
        optimizer="adamw+ema",
        recompute=MemorySaving.ALWAYS,
        shard_state=MemorySaving.NEVER,
        chunks=3,
        pipelines=2,
        update_times=4,
        run_ahead=0,
        search_on=True,
        further=(HALF,),
    )
    assert wanted.question == asked.under(
        memory=4e9, took=(0.01, 0.016), state_precision="bfloat16-masters"
    )
    assert {device.memory for device in wanted.question.cluster.each} == {4e9}
    assert set(wanted.options) == {
        *("optimizer", "memory", "recompute", "chunks", "pipelines", "took", "further"),
        *("state_precision", "shard_state", "update_times", "search_on", "averaged", "run_ahead"),
    }


def test_times_are_carried_to_another_device():
    wanted = Wanted(stored(V100), local(2), device="h100", precision="float32")
    asked = Question(V100, local(2)).under(device="h100", precision="float32")
    assert wanted.question == asked
    with pytest.raises(InvalidInput):
        _ = Wanted(stored(), local(2), device="h100").question
    assert Wanted(stored(), local(2), device="h100", measured_on="v100").question


def test_what_is_set_is_said():
    wanted = Wanted(stored(), local(2), memory=2**32, recompute=MemorySaving.NEVER)
    said = options_text(wanted).replace("\u00a0", " ")
    assert said == "2 options set: memory 4.00 GiB, recomputation never"
    assert options_text(Wanted(stored(), local(2), planner="straight", batch=9)) == ""
    wanted = replace(wanted, state_precision="bfloat16-masters", shard_state=MemorySaving.ALWAYS)
    every = replace(
        wanted, search_on=True, chunks=3, took=(1.0, 2.0), further=(stored(HALF),), device="h100"
    )
    said = options_text(
        replace(every, measured_on="v100", precision="tf32", pipelines=2, update_times=4)
    )
    for words in (
        "3 chunks",
        "microbatch 8",
        "as on h100",
        "measured on v100",
        "tf32",
        "2 parallel",
        "state bfloat16, float32 masters",
        "sharded state always",
        "updates of up to 4 times the samples",
        "longer search",
    ):
        assert words in said


def test_a_link_names_everything():
    params = Wanted(stored(), local(2), planner="", memory=4e9).params
    assert params[Param.PLANNER] == "all"
    assert params[Param.MEMORY] == "4000000000"
