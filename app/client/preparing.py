"""Models, profiles, clusters and plans of the client."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.client.connection import ServerConnection
from backend.codec import to_plain
from backend.comparison.plans import PlanDifferences
from backend.comparison.traced_runs import TracedRun
from backend.definitions.definition import Definition
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import trace_entry
from backend.runs.clusters import StoredCluster
from backend.runs.plans import StoredPlan
from backend.runs.profiles import StoredProfile


class Preparing(ServerConnection):
    """What comes before a run."""

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

    def import_profile(
        self, definition_id: int, path: Path, microbatch: int | None = None
    ) -> StoredProfile:
        """Keep the profile in a file (JSON, a trace of torch.profiler, a graph.txt) as one of a
        definition. `microbatch`: its samples, where the file does not say them."""
        content = b64encode(path.read_bytes()).decode()
        body = {"definition_id": definition_id, "filename": path.name, "content": content}
        return self._send(
            "POST", "/profiles/files", StoredProfile, body | {"microbatch": microbatch}
        )

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
        self,
        profile_id: int,
        cluster: str,
        plan: Mapping[str, Any],
        name: str = "",
        **state: str,
    ) -> StoredPlan:
        """Keep a plan, such as `proposal["prediction"]["plan"]`; `state` is what counts as memory
        beside the weights: `optimizer="adamw+ema"`, `state_precision=`."""
        body = {"profile_id": profile_id, "cluster": cluster, "plan": plan, "name": name}
        return self._send("POST", "/plans", StoredPlan, body | state)

    def differences(self, plan_id: int, other_id: int) -> PlanDifferences:
        """What differs between two kept plans: figures, layers that moved, stages."""
        return self._get(f"/plans/{plan_id}/differences/{other_id}", PlanDifferences)

    def label_plan(self, plan_id: int, **labels: Any) -> StoredPlan:
        """`name=`, `note=`, `tags=`; what is not given stays."""
        return self._send("PATCH", f"/plans/{plan_id}", StoredPlan, labels)

    def delete_plan(self, plan_id: int) -> StoredPlan:
        """Delete a kept plan for good; refused where runs were launched by it."""
        return self._send("DELETE", f"/plans/{plan_id}", StoredPlan)

    def add_profile(self, definition_id: int, profile: Profile) -> StoredProfile:
        """Keep a profile that was measured elsewhere, of a definition that is kept there."""
        body = {"definition_id": definition_id, "profile": to_plain(Profile, profile)}
        return self._send("POST", "/profiles", StoredProfile, body)

    def label_profile(self, profile_id: int, **labels: Any) -> StoredProfile:
        """As `label_plan`; without a name of its own a profile goes by its model's."""
        return self._send("PATCH", f"/profiles/{profile_id}", StoredProfile, labels)

    def delete_profile(self, profile_id: int) -> StoredProfile:
        """Delete a profile for good; refused where plans were made from it."""
        return self._send("DELETE", f"/profiles/{profile_id}", StoredProfile)

    def clusters(self) -> list[StoredCluster]:
        return self._get("/clusters", list[StoredCluster])

    def save_cluster(self, name: str, cluster: str) -> StoredCluster:
        """Keep a cluster (YAML, or a preset such as "dgx-h100:4") by a name, which then serves
        wherever a cluster is asked for."""
        return self._send("POST", "/clusters", StoredCluster, {"name": name, "cluster": cluster})

    def label_cluster(self, cluster_id: int, **labels: Any) -> StoredCluster:
        """As `label_plan`."""
        return self._send("PATCH", f"/clusters/{cluster_id}", StoredCluster, labels)

    def delete_cluster(self, cluster_id: int) -> StoredCluster:
        """Delete a kept cluster for good; plans made for it stay."""
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
