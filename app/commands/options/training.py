"""The options of `stageflow run` that make up a part of its specification."""

from typing import Annotated, Literal

import typer

from backend.profiles.state_precision import StatePrecision
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.local_heads import LocalHead
from backend.runs.request.spec import CheckpointSpec, StopSpec

StateOption = Annotated[
    StatePrecision, typer.Option(help="Of the weights and the optimizer's state.")
]
RunStateOption = Annotated[
    StatePrecision | None,
    typer.Option(help="Of the weights and the optimizer's state (default: as the plan's)."),
]
ShardOption = Annotated[
    bool | None,
    typer.Option(help="Shard the optimizer's state over replicas (default: as the plan says)."),
]

ReplanOption = Annotated[
    bool,
    typer.Option(help="Go on by a plan for fewer nodes where a lost one stays away for a minute."),
]


TargetOption = Annotated[
    float | None, typer.Option(min=0, max=1, help="Stop at this held-out accuracy.")
]
TargetLossOption = Annotated[
    float | None,
    typer.Option(help="Stop at this held-out loss, or below: ln p for a perplexity p."),
]
EmulateOption = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SCALE",
        help="Compute nothing: wait SCALE seconds for each second of the plan's profile, with "
        "links slowed in proportion. Any number of ranks fits on any machine.",
    ),
]
TrackOption = Annotated[
    str,
    typer.Option(help="Follow it in these trackers, as mlflow,wandb; or none (default: as set)."),
]
LocalHeadOption = Annotated[
    LocalHead,
    typer.Option(
        help="From which stages learn under a schedule with local losses (default: as suits the "
        "data)."
    ),
]
EvaluateOption = Annotated[
    int,
    typer.Option(min=0, help="Evaluate every so many updates too; 0 = after each epoch alone."),
]
FurtherRateOption = Annotated[
    float | None, typer.Option("--lr", help="Another learning rate from here on.")
]


def stop_spec(
    patience: Annotated[
        int, typer.Option(min=0, help="Stop so many evaluations after the best one; 0 = never.")
    ] = 0,
    watch: Annotated[str, typer.Option(help="The metric that patience watches.")] = HELD_OUT_LOSS,
    better: Annotated[
        Literal["", "larger", "smaller"],
        typer.Option(help="Which of its values are, where it is a metric of your own."),
    ] = "",
    max_updates: Annotated[
        int, typer.Option(min=0, help="Stop after so many weight updates; 0 = never.")
    ] = 0,
    max_seconds: Annotated[
        float,
        typer.Option(min=0, help="Stop so long after the start, at an evaluation; 0 = never."),
    ] = 0.0,
) -> StopSpec:
    """When a training ends before its last epoch, beside its target."""
    return StopSpec(patience, watch, better, max_updates, max_seconds)


def checkpoint_spec(
    save_updates: Annotated[
        int,
        typer.Option(min=0, help="A checkpoint every so many weight updates; 0 = not by count."),
    ] = 0,
    save_seconds: Annotated[
        float, typer.Option(min=0, help="And every so many seconds; 0 = not by time.")
    ] = 30.0,
    keep: Annotated[int, typer.Option(min=1, help="Newest checkpoints that are kept.")] = 3,
    keep_best: Annotated[
        bool, typer.Option("--keep-best", help="And that of the best evaluation (see --watch).")
    ] = False,
) -> CheckpointSpec:
    """When checkpoints are taken, and how many are kept."""
    return CheckpointSpec(save_updates, save_seconds, keep, keep_best)
