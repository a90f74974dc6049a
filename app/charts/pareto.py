"""Plans by the seconds of a sample and by its energy, or what it costs."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.differences import money_words
from app.formats import joules, seconds
from backend.comparison.pareto import pareto
from backend.prediction.answer import Answer
from backend.prediction.cost import MILLION

MS = 1e-3
TEN = 10.0


def pareto_chart(answers: Sequence[Answer]) -> go.Figure | None:
    """One point a plan, full where no other is better in all that is known. None where there is
    nothing to choose: neither joules nor money are known of all, or there is one plan."""
    has_joules = all(answer.energy for answer in answers)
    has_money = all(answer.money is not None for answer in answers)
    if len(answers) < 2 or not (has_joules or has_money):
        return None
    drawing = figure(height=240, legend=False)
    across = [answer.seconds_per_sample / MS for answer in answers]
    up = [_height(answer, has_joules) for answer in answers]
    drawing.add_scatter(
        x=across,
        y=up,
        mode="markers",
        cliponaxis=False,
        marker={
            "size": 12,
            "color": palette.FORWARD,
            "symbol": ["circle" if best else "circle-open" for best in pareto(answers)],
        },
        hovertext=[_hover(answer) for answer in answers],
        hoverinfo="text",
    )
    title = "J per sample" if has_joules else "money per million samples"
    drawing.update_xaxes(title={"text": "ms per sample"}, fixedrange=True, **_scale(across))
    drawing.update_yaxes(title={"text": title}, fixedrange=True, **_scale(up))
    return drawing


def _scale(values: Sequence[float]) -> dict[str, Any]:
    """By powers of ten where they differ by more than one: the slowest plan may take a hundred
    times as long as those worth a choice. Fewer have no power of ten between them to be named."""
    if 0 < TEN * min(values) < max(values):
        return {"type": "log", "dtick": "D2" if max(values) < TEN**2 * min(values) else 1}
    return {"rangemode": "tozero", "nticks": 5}


def _height(answer: Answer, by_joules: bool) -> float:
    if by_joules and answer.energy:
        return answer.energy.joules
    return (answer.money or 0.0) * MILLION


def _hover(answer: Answer) -> str:
    plan = answer.prediction.plan
    said = [f"<b>{plan.short_label}</b> {plan.planner}", seconds(answer.seconds_per_sample)]
    if answer.energy:
        said.append(joules(answer.energy.joules))
    if answer.money is not None:
        said.append(f"{money_words(answer.money)} per million samples")
    return "<br>".join(said)
