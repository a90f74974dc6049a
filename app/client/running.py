"""Runs, their files, nodes and pools of the client."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from app.client.connection import NOTHING, ServerConnection
from backend.codec import from_json, to_json, to_plain
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.dispatch.nodes import Node
from backend.runs.history.comments import Comment
from backend.runs.history.followed import Followed
from backend.runs.history.listing import QueuedRun, RunPage
from backend.runs.history.records import LogLine, MetricPoint, StoredAttempt
from backend.runs.history.views import ListView, SavedView
from backend.runs.pools.pool import Pool
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run
from backend.runs.sweeps.report import SweepReport
from backend.runs.sweeps.sweep import SweepSpec
from backend.runs.use import UsePoint


class Running(ServerConnection):
    """What runs, and where."""

    def runs(self, **wanted: Any) -> RunPage:
        """`states=["failed"]`, `text=`, `tag=`, `sort=`, `limit=`: see /api/v1/docs."""
        return self._get("/runs", RunPage, wanted)

    def run(self, run_id: int) -> Run:
        return self._get(f"/runs/{run_id}", Run)

    def expected(self, run_id: int) -> Expectation:
        """What was predicted of a run, also at the share of the cores that others left it."""
        return self._get(f"/runs/{run_id}/expected", Expectation)

    def paces(self, run_id: int) -> Paces | None:
        """How long each rank computes beside its plan, and the cluster as it was measured."""
        return self._get(f"/runs/{run_id}/paces", cast(type[Paces | None], Paces | None))

    def watched_in_vain(self, run_id: int) -> str | None:
        """That evaluations do not tell the metric that the run watches; None where they do."""
        return self._get(f"/runs/{run_id}/watched-in-vain", cast(type[str | None], str | None))

    def submit(self, spec: RunSpec, name: str = "", origin: int | None = None) -> Run:
        """Ask for a profile or a training; it starts when a node is free."""
        body = {"spec": json.loads(to_json(RunSpec, spec)), "name": name, "origin": origin}
        return self._submitted("/runs", body)

    def retry(self, run_id: int) -> Run:
        return self._submitted(f"/runs/{run_id}/retry")

    def resume(
        self,
        run_id: int,
        plan_id: int | None = None,
        epochs: int = 0,
        *,
        best: bool = False,
        learning_rate: float | None = None,
    ) -> Run:
        """Go on from the newest checkpoint, or from that of the best evaluation, as a new run; on
        another plan, with other epochs or another rate where these are given."""
        body = {"plan_id": plan_id, "epochs": epochs, "best": best, "learning_rate": learning_rate}
        return self._submitted(f"/runs/{run_id}/resume", body)

    def start_sweep(self, spec: SweepSpec, name: str = "") -> SweepReport:
        """Ask for a training with every combination of some settings' values, or random ones."""
        body = {"spec": to_plain(SweepSpec, spec), "name": name}
        return self._send("POST", "/sweeps", SweepReport, body)

    def sweeps(self) -> list[SweepReport]:
        return self._get("/sweeps", list[SweepReport])

    def sweep(self, sweep_id: int) -> SweepReport:
        return self._get(f"/sweeps/{sweep_id}", SweepReport)

    def cancel_sweep(self, sweep_id: int) -> SweepReport:
        """Cancel those of its runs that have not ended."""
        return self._send("POST", f"/sweeps/{sweep_id}/cancel", SweepReport)

    def attempts(self, run_id: int) -> list[StoredAttempt]:
        return self._get(f"/runs/{run_id}/attempts", list[StoredAttempt])

    def cancel(self, run_id: int) -> Run:
        return self._send("POST", f"/runs/{run_id}/cancel", Run)

    def show_stacks(self, run_id: int) -> Run:
        """Let every rank write the stacks of its threads into the log: see `logs`."""
        return self._send("POST", f"/runs/{run_id}/stacks", Run)

    def delete(self, run_id: int) -> Run:
        """Delete an ended run for good, with its log, metrics, timelines and files."""
        return self._send("DELETE", f"/runs/{run_id}", Run)

    def label(self, run_id: int, **labels: Any) -> Run:
        """`starred=`, `note=`, `name=`, `tags=`."""
        return self._send("PATCH", f"/runs/{run_id}", Run, labels)

    def comments(self, run_id: int) -> list[Comment]:
        """The comments on a run, the oldest first."""
        return self._get(f"/runs/{run_id}/comments", list[Comment])

    def comment(self, run_id: int, text: str) -> Comment:
        return self._send("POST", f"/runs/{run_id}/comments", Comment, {"text": text})

    def delete_comment(self, comment_id: int) -> Comment:
        return self._send("DELETE", f"/comments/{comment_id}", Comment)

    def views(self) -> list[SavedView]:
        """Filters of the list of runs that are kept by name, for oneself or shared."""
        return self._get("/views", list[SavedView])

    def save_view(self, name: str, view: ListView, *, shared: bool = False) -> SavedView:
        body = {"name": name, "view": to_plain(ListView, view), "shared": shared}
        return self._send("POST", "/views", SavedView, body)

    def delete_view(self, view_id: int) -> SavedView:
        return self._send("DELETE", f"/views/{view_id}", SavedView)

    def trackers(self, run_id: int) -> list[Followed]:
        return self._get(f"/runs/{run_id}/trackers", list[Followed])

    def follow(self, run_id: int, tracker: str) -> Followed:
        return self._send("POST", f"/runs/{run_id}/trackers/{quote(tracker, safe='')}", Followed)

    def stop_following(self, run_id: int, tracker: str) -> Followed:
        return self._send("DELETE", f"/runs/{run_id}/trackers/{quote(tracker, safe='')}", Followed)

    def import_run(self, run: str, definition_id: int, names: Mapping[str, str] = NOTHING) -> Run:
        body = {"run": run, "definition_id": definition_id, "names": dict(names)}
        return self._send("POST", "/runs/import", Run, body)

    def wait(self, run_id: int, pause: float = 1.0) -> Run:
        """Look every `pause` seconds until the run has ended."""
        while not (run := self.run(run_id)).state.is_final:
            time.sleep(pause)
        return run

    def logs(self, run_id: int, after: int = 0) -> Iterator[LogLine]:
        """Every line behind sequence number `after`, as many as there are now."""
        while True:
            page = self._get(f"/runs/{run_id}/logs", dict[str, Any], {"after": after})
            if not page["lines"]:
                return
            yield from (LogLine(**line) for line in page["lines"])
            after = page["next"]

    def metric_names(self, run_id: int) -> Sequence[str]:
        return self._get(f"/runs/{run_id}/metrics", list[str])

    def metric(self, run_id: int, name: str, points: int = 1000) -> list[MetricPoint]:
        """At most `points` points; above that each is the mean of neighbours."""
        path = f"/runs/{run_id}/metrics/{quote(name, safe='')}"
        return self._get(path, list[MetricPoint], {"points": points})

    def export(self, run_id: int, format: str = "json") -> bytes:
        """The run as a file: json, csv, parquet, spans, trace, html, png or log."""
        return self._ask("GET", f"/runs/{run_id}/export", {"format": format})

    def use(self, run_id: int) -> list[UsePoint]:
        """What each rank used over time."""
        return self._get(f"/runs/{run_id}/use", list[UsePoint])

    def artifacts(self, run_id: int) -> list[dict[str, Any]]:
        """The files kept with a run: `name`, `size` in bytes, `sha256`."""
        return self._get(f"/runs/{run_id}/artifacts", list[dict[str, Any]])

    def artifact(self, run_id: int, name: str) -> bytes:
        """One of them, where it is small enough for the memory."""
        return self._ask("GET", f"/runs/{run_id}/artifacts/{quote(name)}")

    def save_artifact(self, run_id: int, name: str, path: Path | str) -> None:
        """One of any size, written to `path`. Where a connection is cut off, the next one, or the
        next call, goes on from there. Raises what `app.download.fetch` raises too."""
        self._save(f"/runs/{run_id}/artifacts/{quote(name)}", path)

    def save_model(self, run_id: int, folder: Path | str) -> None:
        """Download the trained model and what lies beside it (its config, its tokenizer), as
        `from_pretrained` opens it; likewise."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for kept in self.artifacts(run_id):
            if Path(kept["name"]).name == kept["name"]:
                self.save_artifact(run_id, kept["name"], folder / kept["name"])

    def checkpoints(self, run_id: int) -> list[Checkpoint]:
        """What a run can be resumed from, the newest first."""
        return self._get(f"/runs/{run_id}/checkpoints", list[Checkpoint])

    def save_checkpoint_file(self, checkpoint_id: int, name: str, path: Path | str) -> None:
        """One of a checkpoint's files, as `save_artifact` does."""
        self._save(f"/checkpoints/{checkpoint_id}/{quote(name)}", path)

    def nodes(self) -> list[Node]:
        return self._get("/nodes", list[Node])

    def node_use(self, name: str, since: float = 0.0) -> list[UsePoint]:
        """What a node has used from Unix second `since` on."""
        path = f"/nodes/{quote(name, safe='')}/use"
        return self._get(path, list[UsePoint], {"since": since})

    def pools(self) -> list[Pool]:
        return self._get("/pools", list[Pool])

    def queue(self) -> list[QueuedRun]:
        return self._get("/queue", list[QueuedRun])

    def _submitted(self, path: str, body: Mapping[str, Any] | None = None) -> Run:
        found = self._ask("POST", path, body=body)
        return from_json(Run, json.dumps(json.loads(found)["run"]))
