"""Projects: what belongs together, who works on it, and what it may use."""

from app import services
from app.components.project.project_list import project_form, project_list
from app.components.project.project_view import back, project_view
from app.components.shell.layout import card, missing, page_header
from app.formats import count
from app.session import state
from app.session.state import Page, Param


@missing("Projects", Page.PROJECTS, "All projects")
def page() -> None:
    """All that the visitor sees, or one."""
    visitor = services.visitor()
    number = state.wanted_id(Param.ID, "project")
    if number is not None:
        project = visitor.projects.get(number)
        back()
        page_header(project.name, "Who works on it, and what it may use.")
        project_view(visitor.projects, visitor.access, project)
        return
    page_header("Projects", "Models, plans and runs belong to a project, and its members see them.")
    found = visitor.projects.list()
    with card("Projects", count(len(found))):
        project_list(found, visitor.access)
    with card("New project"):
        project_form(visitor.projects, visitor.access)


page()
