"""A profile that was measured elsewhere comes in: one form, wherever it stands."""

from pathlib import PurePath

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.session import state
from app.session.state import Page
from backend.definitions.definition import Definition
from backend.errors import InvalidInput
from backend.profiles.document import read_profile
from backend.profiles.files import GRAPH, SUFFIXES

MOST = 64  # MiB
ZOO = "zoo: "
HELP = "Samples in one microbatch. A graph.txt does not say it; other files do."


def import_menu(to: Page = Page.PROFILE) -> None:
    """The form in a menu; `to` is the page that opens with the profile."""
    with st.popover("Import a profile", icon=":material/upload_file:", **closed(why_not())):
        import_form(to=to)


@guarded
def import_form(definition: Definition | None = None, to: Page = Page.PROFILE) -> None:
    """Asks for the file, for its model where that is not `definition`, and for the microbatch."""
    file = st.file_uploader(
        "Profile (JSON), a trace of torch.profiler, or PipeDream's graph.txt",
        type=SUFFIXES,
        max_upload_size=MOST,
        key="import-file",
    )
    model = str(definition.id) if definition else _model(file)
    says = file is None or PurePath(file.name).suffix != GRAPH
    microbatch = st.number_input(
        "Samples per microbatch",
        1,
        value=None,
        help=HELP,
        placeholder="as the file says" if says else "such as 128",
    )
    barred = why_not(definition.project_id if definition else None)
    barred = barred or _lacking(file, model, microbatch)
    pressed = st.button("Import", type="primary", icon=":material/upload_file:", **closed(barred))
    if pressed and file is not None and model:
        _keep(file, model, int(microbatch) if microbatch else None, to)


def _lacking(file: UploadedFile | None, model: str | None, microbatch: float | None) -> str | None:
    """What the form still needs, for the closed button."""
    if file is None:
        return "Choose a file first."
    if not model:
        return "Choose the model that the profile is of."
    if PurePath(file.name).suffix == GRAPH and not microbatch:
        return "Give the samples per microbatch: a graph.txt does not say them."
    return None


def _model(file: UploadedFile | None) -> str | None:
    """A stored definition's id, or one of the zoo; the one of the file's name is chosen already."""
    definitions = services.backend().definitions
    kept = definitions.list()
    names = {str(each.id): each.label for each in kept}
    names |= {f"{ZOO}{entry.name}": f"{entry.name} · of the zoo" for entry in definitions.zoo()}
    by_name = {f"{entry.name}": f"{ZOO}{entry.name}" for entry in definitions.zoo()}
    by_name |= {each.name: str(each.id) for each in reversed(kept)}
    chosen = by_name.get(_name_of(file)) if file else None
    return st.selectbox(
        "Model",
        list(names),
        index=list(names).index(chosen) if chosen else None,
        format_func=names.__getitem__,
        placeholder="Choose its model",
        help="The model that was profiled. Add it on the page Models first if it is not listed.",
        key=f"import-model-{file.file_id if file else ''}",
    )


def _name_of(file: UploadedFile) -> str:
    """The model's name in a profile of ours, else the file's name without its endings."""
    try:
        return read_profile(file.getvalue()).name
    except InvalidInput:
        return str(PurePath(file.name.removesuffix(".gz")).stem)


@guarded
def _keep(file: UploadedFile, model: str, microbatch: int | None, to: Page) -> None:
    backend = services.backend()
    is_new = model.startswith(ZOO)
    definition_id = (
        backend.definitions.add_zoo(model.removeprefix(ZOO)).id if is_new else int(model)
    )
    kept = backend.profiles.bring(file.name, file.getvalue(), definition_id, microbatch)
    state.notify(f"Profile {kept.id} is imported")
    state.go(to, **{"profile" if to is Page.PLAN else "id": kept.id})
