"""The options of `stageflow run` that say how weights are updated."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import typer

from backend.planning.optimizers import OPTIMIZERS, OptimizerName
from backend.runs.request.groups import read_groups
from backend.runs.request.optimizer_checks import with_betas
from backend.runs.request.optimizer_spec import OptimizerSpec, RateDecay


def optimizer_spec(
    optimizer: Annotated[
        OptimizerName | None,
        typer.Option(help="The update rule (default: the one that the plan was made for)."),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option("--lr", help="Before any factor (default: the usual one of the rule)."),
    ] = None,
    momentum: Annotated[float, typer.Option(min=0, help="Of the rule momentum.")] = 0.9,
    betas: Annotated[
        str, typer.Option(help="Of Adam, AdamW, Lion: 0.9,0.95 (default: the usual ones).")
    ] = "",
    eps: Annotated[float | None, typer.Option(help="Of Adam, AdamW (default: 1e-8).")] = None,
    weight_decay: Annotated[float, typer.Option(min=0, help="Weight decay.")] = 0.0,
    decayed: Annotated[
        Literal["", "all", "matrices"],
        typer.Option(
            help="What weight decay is for: all weights, or all but norms and biases (default: "
            "matrices under AdamW, Adafactor and Lion, else all)."
        ),
    ] = "",
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="Weights with another rate and decay: NAMES=RATE or NAMES=RATE,DECAY, where RATE "
            "is a factor; repeatable, the first counts.",
        ),
    ] = None,
    clip: Annotated[float | None, typer.Option(min=0, help="Maximum norm of the gradient.")] = None,
    clip_by: Annotated[
        Literal["model", "stage"],
        typer.Option(help="Whose norm: the whole gradient's, or that of each stage by itself."),
    ] = "model",
    warm_up: Annotated[
        float, typer.Option(min=0, help="Epochs in which the rate rises from 0.")
    ] = 0.0,
    warm_up_updates: Annotated[
        int, typer.Option(min=0, help="The same in weight updates, as transformers counts them.")
    ] = 0,
    decay: Annotated[RateDecay, typer.Option(help="How the rate goes on.")] = "none",
    ema: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Evaluate and save averaged weights, of which this share stays at each update "
            "(0.999); 0 = those that are trained (default: as the plan was made for).",
        ),
    ] = None,
) -> Callable[[OptimizerSpec], OptimizerSpec]:
    """How weights are updated, from the rule that the plan was made for. Raises `InvalidInput`."""
    told = OptimizerSpec(
        momentum=momentum,
        weight_decay=weight_decay,
        clip_norm=clip,
        warm_up=warm_up,
        decay=decay,
        warm_up_updates=warm_up_updates,
        eps=eps,
        decayed=decayed,
        groups=read_groups(groups or ()),
        clip_by=clip_by,
    )

    def chosen(planned: OptimizerSpec) -> OptimizerSpec:
        name = optimizer or planned.name
        average = planned.ema if ema is None else ema
        rate = OPTIMIZERS[name].rate if learning_rate is None else learning_rate
        return with_betas(replace(told, name=name, learning_rate=rate, ema=average), betas)

    return chosen
