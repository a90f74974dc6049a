"""Ask for the weights that a training begins with."""

from dataclasses import replace

from app import services
from app.components.launch.fields import Fields
from app.session.state import Param
from backend.runs.history.listing import RunFilter
from backend.runs.request.spec import TrainSpec
from backend.runs.states import RunState

NEWEST = 20
"""Trained models of so many runs can be chosen."""
ON_NODE = "node"
PARTIAL = (
    "For a base model under a new head: tensors that are missing, or have another size, begin as "
    "the model makes them; tensors that the model does not have are skipped"
)


def weights_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """`spec` with the weights that are chosen."""
    names = {"": "random, from the seed", **_files(), **_trained(spec.definition_id)}
    names[ON_NODE] = "files on the node"
    chosen = _chosen(spec)
    names.setdefault(chosen, chosen)
    kind, _, number = fields.choice("Initial weights", names, chosen, Param.WEIGHTS).partition(":")
    path = ""
    if kind == ON_NODE:
        path = fields.text(
            "Weights on the node",
            spec.weights_path,
            Param.WEIGHTS_PATH,
            "A safetensors file, or a folder of shards with model.safetensors.index.json, inside a "
            "folder that the node's STAGEFLOW_DATA names",
        )
    partial = bool(kind) and fields.switch(
        "Partial weights", spec.weights_partial, Param.WEIGHTS_PARTIAL, PARTIAL
    )
    return replace(
        spec,
        weights_id=int(number) if kind == "file" else None,
        weights_run=int(number) if kind == "run" else None,
        weights_path=path.strip(),
        weights_partial=partial,
    )


def _chosen(spec: TrainSpec) -> str:
    if spec.weights_id is not None:
        return f"file:{spec.weights_id}"
    if spec.weights_run is not None:
        return f"run:{spec.weights_run}"
    return ON_NODE if spec.weights_path else ""


def _files() -> dict[str, str]:
    kept = services.backend().definitions.weights()
    return {f"file:{each.id}": each.label for each in kept}


def _trained(definition: int) -> dict[str, str]:
    """The newest trained models of this definition."""
    wanted = RunFilter(states=(RunState.SUCCEEDED,), kind="train", definition_id=definition)
    runs = services.backend().runs
    newest = [run.id for run in runs.list(wanted, limit=NEWEST).runs]
    kept = runs.artifacts.with_trained_model(newest)
    return {f"run:{id}": f"trained model of run {id}" for id in newest if id in kept}
