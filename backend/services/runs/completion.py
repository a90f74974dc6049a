"""What a run's spec leaves open and its plan or definition says."""

from dataclasses import replace

from backend.definitions.check import check
from backend.definitions.definition import InvalidDefinition
from backend.definitions.forms import form_of
from backend.definitions.parameters import checked
from backend.errors import InvalidInput
from backend.runs.request.groups import with_usual_decay
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from backend.services.runs.stores import Stores


def completed(spec: RunSpec, stores: Stores) -> RunSpec:
    """`spec` with the parameters, granularity and precision of its plan's profile and what its
    weight decay is for, all parameters checked against the definition. Raises `NotFound` on an id
    that leads nowhere and `InvalidDefinition` on a parameter or file that does not fit."""
    definition = stores.definitions.get(spec.definition_id)
    if form_of(definition.filename) == "weights":
        raise InvalidDefinition(f"{definition.label} are weights", "Choose a model to run.")
    match spec:
        case ProfileSpec():
            pass
        case TrainSpec():
            spec = _as_planned(spec, stores)
            spec = replace(spec, optimizer=with_usual_decay(spec.optimizer))
            _check_weights(spec, stores, definition.project_id)
            _check_checkpoint(spec, stores, definition.project_id)
    if not spec.parameters:
        return spec
    known = check(definition.filename, stores.definitions.source(definition.id)).parameters
    return replace(spec, parameters=checked(known, spec.parameters, definition.label))


def _as_planned(spec: TrainSpec, stores: Stores) -> TrainSpec:
    if spec.plan_id is None:
        return spec
    profile = stores.profiles.get(stores.plans.get(spec.plan_id).profile_id).profile
    spec = replace(spec, planned_in=profile.precision)
    if not (spec.parameters or spec.granularity):
        known = dict(profile.parameters)
        spec = replace(spec, parameters=known, granularity=profile.granularity)
    same_model = profile.parameters == spec.parameters
    return replace(spec, tracing=profile.tracing if same_model else "")


def _check_weights(spec: TrainSpec, stores: Stores, project: int) -> None:
    if spec.weights_id is not None:
        kept = stores.definitions.get(spec.weights_id)
        if form_of(kept.filename) != "weights":
            raise InvalidDefinition(f"{kept.label} is not a safetensors file", "Upload one.")
        _check_project(f"{kept.label}", kept.project_id, project)
    if spec.weights_run is not None:
        made = stores.runs.get(spec.weights_run)
        _check_project(f"the model of run {made.id}", made.project_id, project)
        stores.artifacts.trained_model(made.id)


def _check_checkpoint(spec: TrainSpec, stores: Stores, project: int) -> None:
    if spec.checkpoint_id is not None:
        made = stores.runs.get(stores.checkpoints.get(spec.checkpoint_id).run_id)
        _check_project(f"a checkpoint of run {made.id}", made.project_id, project)


def _check_project(what: str, found: int, wanted: int) -> None:
    """Who sees a run sees what it was made of."""
    if found != wanted:
        raise InvalidInput(f"{what} is of another project", "Use one of the model's own project.")
