"""A plan for `torch.distributed.pipelining`: where to split, and in which order each rank works."""

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.prediction.trainers.handover import Handover
from backend.prediction.trainers.modules import split_points
from backend.prediction.trainers.python_file import python_file, rows

USE = """
    pipe = split(model, example)  # the inputs of one microbatch
    stages = [pipe.build_stage(number, device) for number in STAGES[rank]]
    run = schedule(stages, loss_fn=loss)
    run.step(inputs)  # on the first rank, of the whole batch
    run.step(target=target, losses=losses)  # on the last
"""
CODE = '''

def split(model, example):
    """The model as a pipeline; `example` are the inputs of one microbatch, as a tuple."""
    return pipeline(model, mb_args=example, split_spec=SPLIT_SPEC)


def schedule(stages, **options):
    """What runs the stages of a rank in this plan's order; `options` such as loss_fn."""
    found = _PipelineScheduleRuntime(stages, MICROBATCHES, **options)
    with TemporaryDirectory() as folder:
        file = Path(folder, "schedule.csv")
        file.write_text(CSV)
        found._load_csv(str(file))
    return found
'''


def torch_pipelining(plan: Handover) -> bytes:
    """A Python file: split points by module path, the stages of each rank, torch's CSV, and two
    functions that use them. Raises `InvalidInput` where a cut lies at no module, where a
    tensor skips a stage (torch 2.13 has no way back for its gradient), and for chunks in a V."""
    if plan.skips:
        raise InvalidInput(
            f"{plan.skips[0]}: torch's pipelines send no gradient over a stage between",
            "Move the cuts, so that it is read on the same stage or the next.",
        )
    if plan.placement is Placement.V:
        raise InvalidInput(
            f"schedule {plan.schedule!r} hands over within a rank, and the stages that torch's "
            "pipeline() makes begin with a message to the next stage's rank, be it their own, "
            "which gloo refuses (torch 2.13)",
            "Take the order alone (--format csv), or hand zb-v or dualpipe-v to torchtitan.",
        )
    points = [
        f"{path!r}: SplitPoint.{'BEGINNING' if is_before else 'END'}"
        for path, is_before in split_points(plan)
    ]
    stages = [plan.shape.stages_of(rank) for rank in range(plan.size)]
    same = (
        f"The order is that of torch's own {plan.names.torch}."
        if plan.names.torch
        else "The order is in the CSV alone."
    )
    return python_file(
        "torch.distributed.pipelining",
        (*plan.heading, same),
        USE,
        "from pathlib import Path\n"
        "from tempfile import TemporaryDirectory\n\n"
        "from torch.distributed.pipelining import SplitPoint, pipeline\n"
        "from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime\n",
        f"SPLIT_SPEC = {rows(points, '{}')}",
        f"STAGES = {rows(list(map(repr, stages)), '()')}",
        f"MICROBATCHES = {plan.microbatches}",
        f"SAMPLES = {plan.samples}",
        f'CSV = """\\\n{plan.csv.replace(chr(13), "")}"""',
        code=CODE,
    )
