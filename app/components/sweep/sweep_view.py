"""One sweep: how far it is, its runs as lines and as a table, and its end."""

from typing import Any

import streamlit as st

from app import services
from app.charts.frame import CONFIG
from app.charts.parallel import alternative, parallel
from app.components.shell.allowed import why_not
from app.components.shell.confirm import confirm
from app.components.shell.layout import Figure, card, figures
from app.formats import NOTHING, count, duration, number, plain, sentence
from app.session import state
from app.session.links import page_link
from app.session.state import Page
from backend.runs.sweeps.report import SweepReport, SweepResult, is_larger
from backend.runs.sweeps.sweep import Early

LINES = "a line is a run, blue better, orange worse; drag along an axis to pick some"


def cancel_sweep(found: SweepReport) -> None:
    """The button that ends all of its runs."""
    sweep = found.sweep
    left = sum(each.state is not None and not each.state.is_final for each in found.results)

    def cancel() -> None:
        services.backend().sweeps.cancel(sweep.id)
        state.done(f"Sweep {sweep.id} is being cancelled")

    confirm(
        "Cancel",
        "stop_circle",
        f"End {count(left, 'run')} of this sweep? What they have recorded is kept.",
        "Cancel the sweep",
        cancel,
        key="cancel-sweep",
        barred="All of its runs have ended." if not left else why_not(sweep.project_id),
    )


def sweep_figures(found: SweepReport) -> None:
    """How far it is, and the best run."""
    early, best = found.sweep.spec.early, _best(found)
    there = sum(each.run_id is not None for each in found.results)
    figures(
        (
            Figure("Ended", f"{found.num_ended} of {there}"),
            Figure("Running", str(found.num_live)),
            Figure(
                "Time left",
                duration(found.seconds_left),
                help="Assumes that waiting runs take as long as the finished ones, and that as "
                "many run at once as now.",
            ),
            Figure("Ended early", str(sum(bool(each.ended) for each in found.results))),
            Figure(f"Best {early.metric}", number(best.metric if best else None)),
        ),
        "sweep",
    )
    st.progress(found.num_ended / max(1, there))
    if words := _early_words(early):
        st.caption(words)
    if best is not None:
        label = f"The best so far: run {best.run_id} ({plain(_values(best))})"
        page_link(Page.RUN, label, icon=":material/trophy:", id=best.run_id)


def sweep_lines(found: SweepReport) -> None:
    """Parallel coordinates, once two runs have a result."""
    told = [each for each in found.results if each.metric is not None]
    with card(
        "Values and results",
        LINES,
    ):
        if len(told) < 2:
            metric = found.sweep.spec.early.metric
            st.caption(plain(f"Lines appear once two runs have reported {metric}."))
            return
        drawing = parallel(found, larger=bool(is_larger(found.sweep.spec.early)))
        st.plotly_chart(drawing, key="parallel", config=CONFIG, alt=alternative(found))


def sweep_table(found: SweepReport) -> None:
    """Every run: headings sort, the first column opens it."""
    with card("Runs"):
        st.dataframe(
            _columns(found),
            hide_index=True,
            key="sweep-runs",
            placeholder=NOTHING,
            column_config={
                "run": st.column_config.LinkColumn(display_text=r"id=(\d+)"),
                found.sweep.spec.early.metric: st.column_config.NumberColumn(format="%.4g"),
                "samples/s": st.column_config.NumberColumn(format="%.4g"),
                "seconds": st.column_config.NumberColumn(format="%.1f"),
            },
            alt="Every run of the sweep with its values and results",
        )


def _columns(found: SweepReport) -> dict[str, list[Any]]:
    results, spec = found.results, found.sweep.spec
    return {
        "run": [f"run?id={each.run_id}" if each.run_id else None for each in results],
        "best": ["★" if each.number == found.best else "" for each in results],
        **{axis.name: [each.values[axis.name] for each in results] for axis in spec.axes},
        "state": [each.state.value if each.state else "deleted" for each in results],
        spec.early.metric: [each.metric for each in results],
        "samples/s": [each.samples_per_second for each in results],
        "seconds": [each.seconds for each in results],
        "ended early": [each.ended for each in results],
    }


def _best(found: SweepReport) -> SweepResult | None:
    return next((each for each in found.results if each.number == found.best), None)


def _values(result: SweepResult) -> str:
    return ", ".join(
        f"{name} {number(value) if isinstance(value, float) else value}"
        for name, value in result.values.items()
    )


def _early_words(early: Early) -> str:
    """When a sweep ends runs early; "" where it never does."""
    said = ["runs end once one has reached the target"] if early.first else []
    if early.median:
        said.append(f"runs end that fall behind the median of {early.metric}")
    return sentence(", and ".join(said)) + "." if said else ""
