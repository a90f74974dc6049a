"""Every form in which a program is written for others, and how each is recognised when read."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.actions import Action
from backend.pipeline.exchange.chrome_trace import read_trace, write_trace
from backend.pipeline.exchange.document import read_program, write_program
from backend.pipeline.exchange.order_texts import (
    is_megatron,
    is_sail,
    read_megatron,
    read_sail,
)
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.exchange.torch_csv import read_csv, write_csv, write_rows
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline

MEDIA_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ProgramFormat:
    """`write` takes a program and its timeline, which only a trace holds. It raises
    `InvalidInput` for what the form cannot say: some hold one batch (`one_batch`)."""

    name: str
    title: str
    suffix: str
    media: str
    write: Callable[[Program, Timeline], bytes]
    one_batch: bool = False


FORMS: dict[str, ProgramFormat] = {
    form.name: form
    for form in (
        ProgramFormat(
            "text",
            "Text: a line per rank",
            ".txt",
            MEDIA_TEXT,
            lambda program, _: format_program(program).encode(),
        ),
        ProgramFormat(
            "json",
            "JSON: Stageflow's own",
            ".json",
            "application/json",
            lambda program, _: write_program(program),
        ),
        ProgramFormat(
            "csv",
            "CSV: torch.distributed.pipelining",
            ".csv",
            "text/csv; charset=utf-8",
            lambda program, _: write_csv(program).encode(),
            one_batch=True,
        ),
        ProgramFormat(
            "trace",
            "Chrome trace: for Perfetto",
            "-trace.json",
            "application/json",
            lambda program, timeline: write_trace(timeline, program.shape).encode(),
        ),
    )
}


def form_named(name: str) -> ProgramFormat:
    """Raises `InvalidInput` where there is none of that name."""
    if name not in FORMS:
        raise InvalidInput(
            f"no form {name[:100]!r} of programs", f"Choose one of: {', '.join(FORMS)}."
        )
    return FORMS[name]


def read_any(data: bytes) -> Program:
    """The program in a file of any form, or in an order as Megatron-LM or Sea AI Lab's zero-bubble
    schedules write it (`order_texts`), not yet verified. Raises `InvalidInput`.

    Of a trace that Stageflow wrote the order of its computes is read, as one batch: `read_csv`
    says what is added to that.
    """
    try:
        text = data.decode().lstrip("\ufeff")
    except UnicodeDecodeError:
        raise InvalidInput("the file is not text", "Programs are text, JSON or CSV.") from None
    start = text.lstrip()[:400]
    if start.startswith("{"):
        return (
            read_csv(_orders(read_trace(text))) if '"traceEvents"' in start else read_program(text)
        )
    if start.startswith(("schedule ", "#")):
        return parse_program(text)
    if is_megatron(text):
        return read_megatron(text)
    return read_sail(text) if is_sail(text) else read_csv(text)


def _orders(timeline: Timeline) -> str:
    """What each rank computes, in the order of its program, as torch's CSV."""
    rows: list[list[Action]] = [[] for _ in range(timeline.num_ranks)]
    for span in timeline.spans:
        rows[span.rank].append(span.action)
    return write_rows(rows)
