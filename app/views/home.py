"""Where "/" leads: to the runs if there are any, else to the start."""

from app import services
from app.session import state
from app.session.state import Page

state.go(Page.RUNS if services.backend().runs.list(limit=1).total else Page.START)
