"""Runs side by side in a notebook, and their curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.charts.overlay import Curve, overlay, rows
from app.client import Client
from app.formats import duration, number, percent, rate, seconds
from app.naming import plan_name
from app.notebook.figures import INK
from app.notebook.tables import table
from backend.comparison.runs import CurveAxis, differing, positions, smooth, updates_per_epoch
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

VEGA_LITE = "application/vnd.vegalite.v5+json"
POINTS = 1000
HEAD = (
    *("run", "state", "plan", "accuracy", "loss"),
    *("samples/s", "per minibatch", "waiting", "duration"),
)


@dataclass(frozen=True, eq=False)
class NotebookComparison:
    """`runs` as they were when they were asked for."""

    client: Client
    runs: tuple[Run, ...]

    def curves(
        self, metric: str = "loss", over: str = "minibatches", smoothing: float = 0.0
    ) -> "NotebookCurves":
        """One metric of all runs over minibatches, epochs, samples or "wall clock"."""
        axis, lines = CurveAxis(over), []
        for run in self.runs:
            points = self.client.metric(run.id, metric, POINTS)
            ends = self.client.metric(run.id, "accuracy", POINTS) if points else []
            values = [point.value for point in points]
            x = positions(run, points, axis, updates_per_epoch(ends))
            lines.append(Curve(_label(run), x, values, smooth(values, smoothing)))
        return NotebookCurves(metric, axis, tuple(lines))

    def differing(self) -> dict[str, tuple[str, ...]]:
        """The parameters that are not the same in all runs, a value per run."""
        return differing(self.runs)

    def __repr__(self) -> str:
        return f"<comparison of runs {', '.join(str(run.id) for run in self.runs)}>"

    def _repr_html_(self) -> str:
        shown = table(*figures_of(self.runs))
        if not (found := self.differing()):
            return shown
        head = ("parameter", *map(_label, self.runs))
        return shown + table(head, [(name, *values) for name, values in found.items()])


@dataclass(frozen=True, eq=False)
class NotebookCurves:
    """Drawn as on the Compare page, by the notebook's own Vega-Lite; a table where it has none."""

    metric: str
    axis: CurveAxis
    lines: tuple[Curve, ...]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        columns = rows(self.lines)
        data = [
            dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)
        ]
        text = {"labelColor": INK, "titleColor": INK}
        drawn = overlay(self.lines, axis=self.axis.value, name=self.metric, raw=True)
        spec = drawn | {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "width": "container",
            "background": "transparent",
            "config": {"axis": text, "legend": text, "view": {"stroke": None}},
            "data": {"values": data},
        }
        last = [(each.name, len(each.x), _last(each.values)) for each in self.lines]
        html = table(("run", "points", f"last {self.metric}"), last)
        return {VEGA_LITE: spec, "text/html": html, "text/plain": repr(self)}

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.lines)
        return f"<curves of {self.metric} over {self.axis.value}: {names}>"


def figures_of(runs: Sequence[Run]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Head and rows of a table; metrics of definitions are columns too."""
    own = sorted({name for run in runs for name in run.summary.metrics})
    return (*HEAD, *own), [(*_row(run), *(_metric(run, name) for name in own)) for run in runs]


def _row(run: Run) -> Sequence[str]:
    known = run.summary
    return (
        _label(run),
        run.state.value,
        plan_name(run.spec.plan) if isinstance(run.spec, TrainSpec) else "profile",
        percent(known.accuracy),
        number(known.loss),
        rate(known.samples_per_second),
        seconds(known.seconds_per_minibatch),
        percent(known.bubble),
        duration(_took(run)),
    )


def _took(run: Run) -> float | None:
    if run.started_at is None:
        return None
    return ((run.finished_at or datetime.now(UTC)) - run.started_at).total_seconds()


def _metric(run: Run, name: str) -> str:
    return number(run.summary.metrics.get(name))


def _label(run: Run) -> str:
    return f"{run.id} · {run.name}"


def _last(values: Sequence[float]) -> str:
    return number(values[-1]) if values else number(None)
