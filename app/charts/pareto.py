"""Plans by the seconds of a sample and by its energy, or what it costs."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.differences import money_words
from app.formats import joules, seconds
from backend.comparison.pareto import pareto
from backend.prediction.answer import Answer
from backend.prediction.cost import MILLION

MS = 1e-3


def pareto_chart(answers: Sequence[Answer]) -> go.Figure | None:
    """One point a plan, full where no other is better in all that is known. None where there is
    nothing to choose: neither joules nor money are known of all, or there is one plan."""
    has_joules = all(answer.energy for answer in answers)
    has_money = all(answer.money is not None for answer in answers)
    if len(answers) < 2 or not (has_joules or has_money):
        return None
    drawing = figure(height=240, legend=False)
    drawing.add_scatter(
        x=[answer.seconds_per_sample / MS for answer in answers],
        y=[_height(answer, has_joules) for answer in answers],
        mode="markers",
        marker={
            "size": 12,
            "color": palette.FORWARD,
            "symbol": ["circle" if best else "circle-open" for best in pareto(answers)],
        },
        hovertext=[_hover(answer) for answer in answers],
        hoverinfo="text",
    )
    drawing.update_xaxes(title={"text": "ms per sample"}, rangemode="tozero", fixedrange=True)
    title = "J per sample" if has_joules else "money per million samples"
    drawing.update_yaxes(title={"text": title}, rangemode="tozero", fixedrange=True)
    return drawing


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
