"""Which plans the codecs of messages may have."""

from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import check_codecs, codec
from backend.planning.plan import Plan

WITHOUT = "choose a codec that keeps no samples, such as int4."


def sample_keeper(plan: Plan) -> str:
    """The first of a plan's codecs that keeps samples at both ends of a cut; "" where none does."""
    return next((name for name in plan.codecs if name and codec(name).keeps_samples), "")


def check_message_codecs(plan: Plan) -> None:
    """Raise `InvalidInput` where a plan's codecs are not one of the catalog, or none, per cut, or
    keep samples that meet other ranks in the next epoch."""
    check_codecs(plan.codecs, len(plan.partition.stages) - 1)
    if not (name := sample_keeper(plan)):
        return
    fault = (
        f"codec {name!r} keeps what both ends of a cut last read of each sample, and in the next "
        "epoch a sample comes to another"
    )
    if max(plan.partition.replicas) > 1:
        raise InvalidInput(
            f"{fault} replica of a stage (partition {plan.partition.label})",
            f"Use a plan with one device per stage (planner straight), or {WITHOUT}",
        )
    if plan.num_pipelines > 1:
        raise InvalidInput(
            f"{fault} of {plan.pipelines_words}", f"Use a plan of one pipeline, or {WITHOUT}"
        )
