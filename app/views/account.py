"""Account: who one is here, the browsers that are signed in, and tokens for programs."""

from app import services
from app.components.people.account_lists import session_list, token_form, token_list
from app.components.shell.layout import card, empty_state, page_header
from app.formats import plain


def page() -> None:
    """Nothing here can be seen or changed by anybody else."""
    backend = services.backend()
    actor = backend.actor
    if actor.person_id is None:
        page_header("Account")
        empty_state("Nobody signs in here", "STAGEFLOW_SIGN_IN=accounts gives everybody a name.")
        return
    page_header("Account", f"{plain(actor.name)} · {actor.role.value}")
    with card("Tokens", "for programs: the REST API, the Python client, Prometheus"):
        projects = services.visitor().projects.list()
        token_form(backend.tokens, projects)
        token_list(backend.tokens, projects)
    with card("Browsers", "in which you are signed in"):
        session_list(backend.accounts, actor.person_id, actor.name)


page()
