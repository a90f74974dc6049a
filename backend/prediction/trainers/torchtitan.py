"""A plan for torchtitan: keys of its configuration, as its `ParallelismConfig` names them."""

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.prediction.trainers.handover import Handover
from backend.prediction.trainers.modules import listed, loose_functions, units
from backend.prediction.trainers.python_file import python_file, rows

USE = """
    config.parallelism = dataclasses.replace(config.parallelism, **PARALLELISM)
    config.training.local_batch_size = LOCAL_BATCH_SIZE

Where the keys name a CSV, write SCHEDULE_CSV to that file first.
"""
FILE = "schedule.csv"


def torchtitan(plan: Handover) -> bytes:
    """A Python file with the keys of [parallelism], and the order as torch's CSV. Raises
    `InvalidInput` where a cut goes through a module that torchtitan moves as a whole."""
    if plan.placement is Placement.V and not plan.names.torch:
        raise InvalidInput(
            f"torchtitan places the stages of a CSV round the ranks, and {plan.schedule!r} has a V",
            "Plan under zb-v or dualpipe-v, or take the order alone (--format csv).",
        )
    placed = units(plan)
    parts = [
        repr([unit.path for unit in placed if unit.stage == stage])
        for stage in range(len(plan.stages))
    ]
    looped = "Interleaved1F1B" if plan.chunks > 1 else "1F1B"
    keys = {
        "pipeline_parallel_degree": str(plan.size),
        "pipeline_parallel_schedule": repr(plan.names.torch or looped),
        "pipeline_parallel_schedule_csv": repr("" if plan.names.torch else FILE),
        "pipeline_parallel_microbatch_size": str(plan.samples),
        "data_parallel_replicate_degree": str(plan.replicas),
        "data_parallel_shard_degree": "1",
        "module_fqns_per_model_part": rows(parts, "[]").replace("\n", "\n    "),
    }
    return python_file(
        "torchtitan",
        (*plan.heading, *_notes(plan)),
        USE,
        "",
        f"PARALLELISM = {rows([f'{name!r}: {value}' for name, value in keys.items()], '{}')}",
        f"LOCAL_BATCH_SIZE = {plan.samples * plan.microbatches}",
        f'SCHEDULE_CSV = """\\\n{plan.csv.replace(chr(13), "")}"""',
    )


def _notes(plan: Handover) -> tuple[str, ...]:
    loose = loose_functions(plan)
    names = "Modules have the names of the model that was profiled: profile torchtitan's own."
    if not loose:
        return (names,)
    return (
        names,
        f"Functions of the model's own forward are not placed by name: {listed(loose)}.",
    )
