"""Plans ranked by the time to a target, on the page, by the command and over the API's client."""

import json

from typer.testing import CliRunner

from app.cli import app
from app.session.state import Page
from backend.bootstrap import Backend
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import text_of


def test_the_page_says_the_time_where_runs_tell_it(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, **{"rank-by": "accuracy", "target": 0.9})
    assert not page.exception
    captions = [
        caption.replace("\u00a0", " ").replace("\\", "") for caption in page.radio[0].proto.captions
    ]
    assert captions[0].startswith("**To accuracy 90.0 %**: ")
    assert "minibatches: 1 run" in captions[0]
    assert any("not known" in caption for caption in captions)
    assert "ranked by the time to accuracy 90.0 %" in text_of(page).replace("\u00a0", " ")


def test_the_command_ranks_by_it(backend: Backend, seeded: seed.Seeded) -> None:
    asked = ["plan", "--profile", str(seeded.profile), "--devices", "2", "--target", "0.9"]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "250"})
    assert shown.exit_code == 0, shown.output
    assert "to accuracy 90.0" in shown.output
    plain = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    known = [plan["to_target"]["seconds"] for plan in plain["plans"] if plan["to_target"]]
    assert known == sorted(known)
    assert plain["plans"][0]["to_target"]["learnt"]["runs"] == [seeded.succeeded]
    never = CliRunner().invoke(app, [*asked[:-1], "0.999"], env={"COLUMNS": "250"})
    assert "No run of this model has come to the target" in never.output
