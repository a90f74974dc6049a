"""Views of the list of runs that are kept by name."""

from dataclasses import dataclass, field

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.operation import router as operations
from backend.runs.history.views import ListView, SavedView

router = operations()


@dataclass(frozen=True, slots=True)
class NewView:
    """`shared` with everybody in the project, else for oneself; `project_id` where it is kept, by
    default in the first that you see."""

    name: str
    view: ListView = field(default_factory=ListView)
    shared: bool = False
    project_id: Id | None = None


@router.get("/views")
def list_views(caller: CurrentCaller, project_id: Id | None = None) -> list[SavedView]:
    """By name: your own and those that are shared."""
    return list(caller.services(project_id).views.list())


@router.post("/views", status_code=201)
def save_view(caller: CurrentCaller, new: NewView) -> SavedView:
    """Keep a filter of runs with its order and columns. 409 where you have the name."""
    return caller.services(new.project_id).views.save(new.name, new.view, new.shared)


@router.delete("/views/{id:int}")
def delete_view(caller: CurrentCaller, id: Id) -> SavedView:
    """Delete a view; the answer is what it was. Others' private views are not found."""
    return caller.services().views.delete(id)
