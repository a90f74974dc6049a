"""A plan for Megatron-Core: its layout string, in the arguments of a launch.

The grammar: E is the embedding, t a transformer layer, L the output with the loss; | stands between
stages, which go round the pipeline ranks; x*n is n times x. Source: megatron-core 0.16,
`megatron.core.transformer.pipeline_parallel_layer_layout`.
"""

from itertools import groupby

from backend.errors import InvalidInput
from backend.prediction.trainers.handover import Handover
from backend.prediction.trainers.modules import Unit, units
from backend.prediction.trainers.python_file import in_docstring


def megatron(plan: Handover) -> bytes:
    """A file for a shell, with the arguments as an array. Raises `InvalidInput` for other schedules
    than 1F1B and interleaved 1F1B, and for a model that is no stack of numbered layers."""
    if plan.names.megatron is None:
        raise InvalidInput(
            f"Megatron-Core trains by 1F1B or interleaved 1F1B, not by {plan.schedule!r}",
            "Plan under 1f1b-flush or interleaved.",
        )
    placed = units(plan)
    blocks = _blocks(placed)
    arguments = {
        "pipeline-model-parallel-size": str(plan.size),
        "pipeline-model-parallel-layout": f"'{layout(plan, placed)}'",
        "num-layers": str(len(blocks)),
        "micro-batch-size": str(plan.samples),
        "global-batch-size": str(plan.samples * plan.microbatches * plan.replicas),
    }
    switches = ["use-distributed-optimizer"] * plan.shard_state
    if plan.recompute:
        arguments |= {"recompute-granularity": "full", "recompute-method": "uniform"}
        arguments |= {"recompute-num-layers": "1"}
    lines = [f"  --{name} {value}" for name, value in arguments.items()]
    lines += [f"  --{name}" for name in switches]
    said = (*plan.heading, f"Megatron-Core runs it as {plan.names.megatron}.", *_notes(placed))
    head = "\n".join(f"# {line}" for each in said for line in in_docstring(each).splitlines())
    array = "\n".join(["STAGEFLOW_PLAN=(", *lines, ")"])
    use = '#   source this file; torchrun ... pretrain_gpt.py "${STAGEFLOW_PLAN[@]}" ...'
    return f"# A plan by Stageflow, for Megatron-Core.\n#\n{use}\n#\n{head}\n{array}\n".encode()


def layout(plan: Handover, placed: tuple[Unit, ...]) -> str:
    """The value of --pipeline-model-parallel-layout."""
    blocks = _blocks(placed)
    first, last = placed.index(blocks[0]), placed.index(blocks[-1])
    before, behind = placed[:first], placed[last + 1 :]
    _check_together(before, 0, "the embedding")
    _check_together(behind, len(plan.stages) - 1, "the output")
    letters = ["E", *(["t"] * len(blocks)), "L"]
    stages = [0, *(block.stage for block in blocks), len(plan.stages) - 1]
    held = [
        "".join(letter for letter, at in zip(letters, stages, strict=True) if at == stage)
        for stage in range(len(plan.stages))
    ]
    return "|".join(map(_counted, held))


def _blocks(placed: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """The units of the one list of numbered blocks."""
    found = [unit for unit in placed if unit.number is not None]
    owners = {unit.owner for unit in found}
    if len(owners) != 1:
        raise InvalidInput(
            f"the model has {len(owners)} lists of numbered layers, and Megatron-Core lays out one "
            "stack of transformer layers",
            "Hand the plan to another trainer.",
        )
    first, last = placed.index(found[0]), placed.index(found[-1])
    if last - first + 1 != len(found):
        raise InvalidInput(
            "there are other modules between the numbered layers",
            "Hand the plan to another trainer.",
        )
    return tuple(found)


def _check_together(found: tuple[Unit, ...], stage: int, what: str) -> None:
    """Raise `InvalidInput` where they are not all on `stage`."""
    away = [unit.path for unit in found if unit.stage != stage]
    if away:
        raise InvalidInput(
            f"{what} is one piece in Megatron-Core, on stage {stage}, and the plan has {away[0]} "
            "on another",
            "Move the cut, and take the file again.",
        )


def _counted(letters: str) -> str:
    runs = ((letter, len(list(run))) for letter, run in groupby(letters))
    return "".join(f"{letter}*{count}" if count > 1 else letter for letter, count in runs)


def _notes(placed: tuple[Unit, ...]) -> tuple[str, ...]:
    blocks = _blocks(placed)
    others = [unit.path for unit in placed if unit not in blocks]
    if not others:
        return ("The model has neither embedding nor output of its own; Megatron-Core's have.",)
    first = placed.index(blocks[0])
    before, behind = others[:first], others[first:]
    return (f"E stands for {', '.join(before) or 'nothing'}; L for {', '.join(behind) or 'loss'}.",)
