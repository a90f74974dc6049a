"""A server's runs in a notebook: submitted, followed and compared over its REST API."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.client import Client
from app.notebook.comparison import NotebookComparison, figures_of
from app.notebook.planning import NotebookPlan
from app.notebook.profiles import NotebookProfile
from app.notebook.progress import ProgressLine
from app.notebook.tables import heading, paragraphs, table
from backend.cluster.document import write_cluster
from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.history.records import MetricPoint
from backend.runs.request.as_planned import as_planned
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


@dataclass(frozen=True, eq=False)
class NotebookRun:
    """A run as it was when it was last asked for (`run`)."""

    client: Client
    run: Run

    @property
    def id(self) -> int:
        return self.run.id

    def now(self) -> "NotebookRun":
        """The run as it is now."""
        return replace(self, run=self.client.run(self.id))

    def follow(self, pause: float = 0.5) -> "NotebookRun":
        """Show how far it is until it has ended; the ended run. Interrupting leaves it going."""
        line = ProgressLine(f"run {self.id} · {self.run.name}")
        while not (found := self.now()).run.state.is_final:
            told = found.run.progress
            if told is None:
                line(found.run.state.value, 0, 0)
            else:
                line(told.phase, told.done, told.total)
            time.sleep(pause)
        line.end(found.run.state.value)
        return found

    def cancel(self) -> "NotebookRun":
        return replace(self, run=self.client.cancel(self.id))

    def metric(self, name: str = "loss", points: int = 1000) -> list[MetricPoint]:
        """At most so many points; above that each is the mean of neighbours."""
        return self.client.metric(self.id, name, points)

    def log(self) -> str:
        """Every line there is."""
        return "\n".join(each.text for each in self.client.logs(self.id))

    def __repr__(self) -> str:
        return f"<run {self.id} {self.run.name}: {self.run.state.value}>"

    def _repr_html_(self) -> str:
        run = self.run
        told = run.progress
        how = f"{told.phase} {told.done} of {told.total}" if told else ""
        line = " · ".join(filter(None, [run.state.value, how]))
        wrong = [f"{run.error.message} {run.error.advice}"] if run.error else []
        return (
            heading(f"Run {run.id} · {run.name}", line)
            + table(*figures_of([run]))
            + paragraphs(wrong)
        )


class NotebookServer:
    """A dashboard that answers at an address; `client` offers the whole REST API."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def profile(self, profile_id: int) -> NotebookProfile:
        """A profile that is kept there."""
        return NotebookProfile(self.client.profile(profile_id).profile, profile_id)

    def keep(self, profile: NotebookProfile, model: str | Path) -> NotebookProfile:
        """Keep a profile of the notebook there, with the definition's file that it is of."""
        path = Path(model)
        definition = self.client.add_definition(path.read_bytes(), path.name)
        stored = self.client.add_profile(definition.id, profile.profile)
        return NotebookProfile(stored.profile, stored.id)

    def submit(self, plan: NotebookPlan, name: str = "", **training: Any) -> NotebookRun:
        """Keep a plan there and train by it; it starts when a node is free.

        training   fields of `TrainSpec`: epochs=3, seed=1, optimizer={"name": "adam"}, ...; by
                   default the optimizer and the precision of state are those of the plan

        Raises `ApiProblem`, and `InvalidInput` for a plan whose profile the server does not keep.
        """
        if plan.profile_id is None:
            raise InvalidInput(
                "the plan's profile is not kept on the server",
                "Plan from server.profile(ID), or from server.keep(profile, 'model.py').",
            )
        cluster = write_cluster(plan.question.cluster)
        made = plan.prediction
        stored = self.client.save_plan(
            plan.profile_id,
            cluster,
            to_plain(Plan, plan.plan),
            optimizer=made.optimizer,
            state_precision=made.state_precision,
        )
        definition = self.client.profile(plan.profile_id).definition_id
        planned = as_planned(TrainSpec(definition, stored.plan, stored.id), made)
        known = to_plain(TrainSpec, planned)
        asked = {name: known[name] for name in ("definition_id", "plan", "plan_id", "kind")}
        spec: TrainSpec = from_plain(TrainSpec, known | training | asked)
        return NotebookRun(self.client, self.client.submit(spec, name))

    def run(self, run_id: int) -> NotebookRun:
        return NotebookRun(self.client, self.client.run(run_id))

    def runs(self, **wanted: Any) -> list[NotebookRun]:
        """The newest ones; `states=["failed"]`, `text=`, `limit=` as `Client.runs`."""
        return [NotebookRun(self.client, run) for run in self.client.runs(**wanted).runs]

    def compare(self, *runs: NotebookRun | int) -> NotebookComparison:
        """Runs side by side, by themselves or by their ids."""
        ids = [each if isinstance(each, int) else each.id for each in runs]
        if not ids:
            raise InvalidInput("no runs to compare", "Give runs or their ids.")
        return NotebookComparison(self.client, tuple(self.client.run(each) for each in ids))


def connect(url: str = "http://127.0.0.1:8501", token: str = "") -> NotebookServer:
    """The server at an address; asks it who is there. `token` as `Client` takes it. Raises
    `ServerUnreachable` and `ApiProblem`."""
    server = NotebookServer(Client(url, token))
    server.client.runs(limit=1)
    return server
