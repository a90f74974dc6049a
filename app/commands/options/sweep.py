"""What makes a training a sweep: the settings that vary, and when runs end early."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.axes import read_axis
from backend.runs.sweeps.sweep import Early, SweepAxis, SweepSpec


@dataclass(frozen=True, slots=True)
class Varying:
    """A sweep without its training; without axes it is none."""

    axes: tuple[SweepAxis, ...]
    draws: int
    draw_seed: int
    early: Early

    def spec(self, base: TrainSpec) -> SweepSpec:
        """That of a training."""
        return SweepSpec(base, self.axes, self.draws, self.draw_seed, self.early)


def varying(
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="A sweep: NAME=VALUE,VALUE or, drawn, NAME=log:LOW:HIGH (even:, whole:); again "
            "for a further setting. See `stageflow sweep`."
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=0, help="Runs of a random search; 0 = every combination.")
    ] = 0,
    draw_seed: Annotated[int, typer.Option(help="Of the random search.")] = 0,
    stop_first: Annotated[
        bool, typer.Option("--stop-first", help="End the others once one reaches the target.")
    ] = False,
    stop_behind: Annotated[
        bool, typer.Option("--stop-behind", help="End runs that fall behind the median.")
    ] = False,
    by: Annotated[str, typer.Option(help="The metric that tells which run is best.")] = (
        HELD_OUT_LOSS
    ),
    by_better: Annotated[
        Literal["", "larger", "smaller"], typer.Option(help="Its better values.")
    ] = "",
    grace: Annotated[int, typer.Option(min=1, help="Evaluations that each run has.")] = 2,
) -> Varying:
    """What these options ask for."""
    axes = tuple(map(read_axis, vary or ()))
    return Varying(axes, draws, draw_seed, Early(stop_first, stop_behind, by, by_better, grace))
