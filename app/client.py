"""A client of the REST API, in plain Python: `Client("http://127.0.0.1:8501").runs()`.

What comes back are the same values as the services give. Needs neither Streamlit nor torch.
"""

import json
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPResponse
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode
from urllib.request import Request

from app.download import fetch
from app.server.answers import ApiProblem as ApiProblem
from app.server.answers import ServerUnreachable as ServerUnreachable
from app.server.answers import opened
from backend.codec import from_json, to_json, to_plain
from backend.comparison.plans import PlanDifferences
from backend.comparison.shared_cores import Expectation
from backend.comparison.traced_runs import TracedRun
from backend.definitions.definition import Definition
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import trace_entry
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.clusters import StoredCluster
from backend.runs.dispatch.nodes import Node
from backend.runs.history.followed import Followed
from backend.runs.history.listing import QueuedRun, RunPage
from backend.runs.history.records import LogLine, MetricPoint, StoredAttempt
from backend.runs.plans import StoredPlan
from backend.runs.pools.pool import Pool
from backend.runs.profiles import StoredProfile
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run

T = TypeVar("T")
NOTHING: Mapping[str, str] = MappingProxyType({})


class Client:
    """`token` is the server's STAGEFLOW_API_TOKEN; a server on this machine needs none.

    Every method raises `ApiProblem` with the server's words, or `ServerUnreachable`.
    """

    def __init__(self, url: str = "http://127.0.0.1:8501", token: str = "") -> None:
        self._url = url.rstrip("/") + "/api/v1"
        self._token = token

    def definitions(self) -> list[Definition]:
        return self._get("/definitions", list[Definition])

    def add_definition(
        self, source: str | bytes, filename: str, name: str | None = None
    ) -> Definition:
        """Keep a model definition: a Python file or a config as text, a program as bytes."""
        data = source.encode() if isinstance(source, str) else source
        body = {"content": b64encode(data).decode(), "filename": filename, "name": name}
        return self._send("POST", "/definitions", Definition, body)

    def definition_file(self, definition_id: int) -> bytes:
        """The file of a definition, as it was given."""
        return self._ask("GET", f"/definitions/{definition_id}/source")

    def add_zoo(self, name: str) -> Definition:
        return self._send("POST", "/definitions", Definition, {"zoo": name})

    def profile(self, profile_id: int) -> StoredProfile:
        return self._get(f"/profiles/{profile_id}", StoredProfile)

    def add_traced_profile(self, definition_id: int, trace: Path, batch: int = 0) -> StoredProfile:
        """Keep what a trace of one's own training steps (.json, .json.gz) says of the layers."""
        body = trace_entry(trace) | {"definition_id": definition_id, "microbatch": batch or None}
        return self._send("POST", "/profiles/traces", StoredProfile, body)

    def compare_traces(self, plan_id: int, traces: Sequence[Path]) -> TracedRun:
        """A run elsewhere beside the prediction of a kept plan, by a trace for each rank."""
        sent = [*map(trace_entry, traces)]
        return self._send("POST", f"/plans/{plan_id}/traces", TracedRun, {"traces": sent})

    def plan(self, plan_id: int) -> StoredPlan:
        return self._get(f"/plans/{plan_id}", StoredPlan)

    def propose(self, profile_id: int, cluster: str, **question: Any) -> list[dict[str, Any]]:
        """Plans as plain values, best first; the fields are documented at /api/v1/docs."""
        body = {"profile_id": profile_id, "cluster": cluster} | question
        return self._send("POST", "/plans/propose", list[dict[str, Any]], body)

    def compare(self, profile_id: int, cluster: str, **question: Any) -> dict[str, Any]:
        """Every planner under every schedule: `plans`, best first, and those that are `refused`.
        Without `schedule=""` under PipeDream's alone."""
        body = {"profile_id": profile_id, "cluster": cluster} | question
        return self._send("POST", "/plans/compare", dict[str, Any], body)

    def predict(self, profile_id: int, cluster: str, plan: Mapping[str, Any]) -> Prediction:
        """What a plan will do, such as a proposal's whose stages were changed by hand."""
        body = {"profile_id": profile_id, "cluster": cluster, "plan": plan}
        return self._send("POST", "/plans/predict", Prediction, body)

    def save_plan(
        self, profile_id: int, cluster: str, plan: Mapping[str, Any], name: str = ""
    ) -> StoredPlan:
        """Keep a plan, such as `proposal["prediction"]["plan"]`."""
        body = {"profile_id": profile_id, "cluster": cluster, "plan": plan, "name": name}
        return self._send("POST", "/plans", StoredPlan, body)

    def differences(self, plan_id: int, other_id: int) -> PlanDifferences:
        """What differs between two kept plans: figures, layers that moved, stages."""
        return self._get(f"/plans/{plan_id}/differences/{other_id}", PlanDifferences)

    def rename_plan(self, plan_id: int, name: str) -> StoredPlan:
        return self._send("PATCH", f"/plans/{plan_id}", StoredPlan, {"name": name})

    def delete_plan(self, plan_id: int) -> StoredPlan:
        """Take a kept plan away for good; refused where runs were launched by it."""
        return self._send("DELETE", f"/plans/{plan_id}", StoredPlan)

    def add_profile(self, definition_id: int, profile: Profile) -> StoredProfile:
        """Keep a profile that was measured elsewhere, of a definition that is kept there."""
        body = {"definition_id": definition_id, "profile": to_plain(Profile, profile)}
        return self._send("POST", "/profiles", StoredProfile, body)

    def delete_profile(self, profile_id: int) -> StoredProfile:
        """Take a profile away for good; refused where plans were made from it."""
        return self._send("DELETE", f"/profiles/{profile_id}", StoredProfile)

    def clusters(self) -> list[StoredCluster]:
        return self._get("/clusters", list[StoredCluster])

    def save_cluster(self, name: str, cluster: str) -> StoredCluster:
        """Keep a cluster (YAML, or a preset such as "dgx-h100:4") by a name, which then serves
        wherever a cluster is asked for."""
        return self._send("POST", "/clusters", StoredCluster, {"name": name, "cluster": cluster})

    def rename_cluster(self, cluster_id: int, name: str) -> StoredCluster:
        return self._send("PATCH", f"/clusters/{cluster_id}", StoredCluster, {"name": name})

    def delete_cluster(self, cluster_id: int) -> StoredCluster:
        """Take a kept cluster away for good; plans made for it stay."""
        return self._send("DELETE", f"/clusters/{cluster_id}", StoredCluster)

    def program(self, plan_id: int, format: str = "text", microbatches: int = 0) -> bytes:
        """A kept plan as a file: its program (text, json, csv, trace), or as other trainers read it
        (torch, torchtitan, megatron, deepspeed)."""
        query = {"format": format, "microbatches": microbatches}
        return self._ask("GET", f"/plans/{plan_id}/program", query)

    def examine(self, profile_id: int, cluster: str, program: str) -> dict[str, Any]:
        """What is wrong with a program in a file's text, and what it takes if nothing is."""
        body = {"profile_id": profile_id, "cluster": cluster, "program": program}
        return self._send("POST", "/programs", dict[str, Any], body)

    def runs(self, **wanted: Any) -> RunPage:
        """`states=["failed"]`, `text=`, `tag=`, `sort=`, `limit=`: see /api/v1/docs."""
        return self._get("/runs", RunPage, wanted)

    def run(self, run_id: int) -> Run:
        return self._get(f"/runs/{run_id}", Run)

    def expected(self, run_id: int) -> Expectation:
        """What was predicted of a run, also at the share of the cores that others left it."""
        return self._get(f"/runs/{run_id}/expected", Expectation)

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

    def attempts(self, run_id: int) -> list[StoredAttempt]:
        return self._get(f"/runs/{run_id}/attempts", list[StoredAttempt])

    def cancel(self, run_id: int) -> Run:
        return self._send("POST", f"/runs/{run_id}/cancel", Run)

    def delete(self, run_id: int) -> Run:
        """Take an ended run away for good, with its log, metrics, timelines and files."""
        return self._send("DELETE", f"/runs/{run_id}", Run)

    def label(self, run_id: int, **labels: Any) -> Run:
        """`starred=`, `note=`, `name=`, `tags=`."""
        return self._send("PATCH", f"/runs/{run_id}", Run, labels)

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

    def artifacts(self, run_id: int) -> list[dict[str, Any]]:
        """The files kept with a run: `name`, `size` in bytes, `sha256`."""
        return self._get(f"/runs/{run_id}/artifacts", list[dict[str, Any]])

    def artifact(self, run_id: int, name: str) -> bytes:
        """One of them, where it is small enough for the memory."""
        return self._ask("GET", f"/runs/{run_id}/artifacts/{quote(name)}")

    def save_artifact(self, run_id: int, name: str, path: Path) -> None:
        """One of any size, written to `path`. Where a connection is cut off, the next one, or the
        next call, goes on from there. Raises what `app.download.fetch` raises too."""
        self._save(f"/runs/{run_id}/artifacts/{quote(name)}", path)

    def checkpoints(self, run_id: int) -> list[Checkpoint]:
        """What a run can be resumed from, the newest first."""
        return self._get(f"/runs/{run_id}/checkpoints", list[Checkpoint])

    def save_checkpoint_file(self, checkpoint_id: int, name: str, path: Path) -> None:
        """One of a checkpoint's files, as `save_artifact` does."""
        self._save(f"/checkpoints/{checkpoint_id}/{quote(name)}", path)

    def nodes(self) -> list[Node]:
        return self._get("/nodes", list[Node])

    def pools(self) -> list[Pool]:
        return self._get("/pools", list[Pool])

    def queue(self) -> list[QueuedRun]:
        return self._get("/queue", list[QueuedRun])

    def _submitted(self, path: str, body: Mapping[str, Any] | None = None) -> Run:
        found = self._ask("POST", path, body=body)
        return from_json(Run, json.dumps(json.loads(found)["run"]))

    def _get(self, path: str, kind: type[T], query: Mapping[str, Any] | None = None) -> T:
        return from_json(kind, self._ask("GET", path, query))

    def _send(
        self, method: str, path: str, kind: type[T], body: Mapping[str, Any] | None = None
    ) -> T:
        return from_json(kind, self._ask(method, path, body=body))

    def _save(self, address: str, path: Path) -> None:
        fetch(lambda headers: self._opened("GET", address, headers=headers), path)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> bytes:
        with self._opened(method, path, query, body) as answer:
            return answer.read()

    def _opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> HTTPResponse:
        """The server's answer, of which nothing is read yet."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        address = self._url + path + (f"?{urlencode(given, doseq=True)}" if given else "")
        sent = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        data = None
        if body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = Request(address, data, {**sent, **headers}, method=method)
        return opened(request)
