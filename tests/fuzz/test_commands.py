"""Every command with any words: what it can do, or an error of ours, never a traceback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from app import cli
from app.commands import clusters
from backend.cluster.device_record import DeviceRecord, FlopRates
from backend.errors import StageflowError
from tests.app import seed
from tests.app.copied import copied
from tests.fuzz.mutations import NUMBERS

STARTS_PROCESSES = ("up", "demo", "worker", "doctor", "local", "slurm", "kubernetes", "send")
WORDS = (
    *("", "-", "a" * 5000, "../../etc/passwd", ".", "/nowhere/x", "x.py", "bad.json", "any.bin"),
    *("1", "2", "2x8", "1,2", "1-1", "80%", "1GiB", "pipedream", "gpipe", "best", "mlp@1", "a@b"),
    *("default", "csv", "json", "\N{SNOWMAN}", "%s", "{}", "a:b", "http://127.0.0.1:1/"),
)
MEASURED = DeviceRecord(FlopRates(float32=1e11), 2e10, launch=7e-6)
FEW = settings(max_examples=30, database=None, suppress_health_check=list(HealthCheck))


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, by the words that lead to it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif name not in STARTS_PROCESSES:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(cli.app)))


@st.composite
def arguments(draw: st.DrawFn, command: Any) -> list[str]:
    """Words for its arguments and for some of its options."""
    value = st.sampled_from(WORDS) | st.sampled_from(NUMBERS)
    given: list[str] = []
    for each in command.params:
        if each.param_type_name == "argument":
            given += draw(st.lists(value, min_size=int(each.required), max_size=2))
        elif each.name == "detach":  # nobody waits for a run that no agent takes
            given.append("--detach")
        elif not each.is_eager and draw(st.booleans() | st.just(each.required)):
            given += each.opts[:1] if each.is_flag else [each.opts[0], draw(value)]
    return given


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_words_bring_out_another_error(
    path: tuple[str, ...], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clusters, "measured_record", lambda: MEASURED)  # seconds, whatever is said
    backend = seed.fresh()
    copied(backend)
    backend.close()
    Path("x.py").write_text("def model(): ...\n")
    Path("bad.json").write_text("{")
    Path("any.bin").write_bytes(bytes(range(256)))

    alone = cli.application(path[0])  # as `cli.main` makes it: all of them take a second

    @FEW
    @given(arguments(COMMANDS[path]))
    def one(words: list[str]) -> None:
        ended = CliRunner().invoke(alone, [*path, *words], input="\n")
        fault = ended.exception
        assert fault is None or isinstance(fault, SystemExit | StageflowError | OSError), fault
        if isinstance(fault, OSError):
            assert fault.filename, fault  # which `cli.main` tells with its reason

    one()
