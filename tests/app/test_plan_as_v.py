"""Plan: a V, with two stages on each device, is told by its devices."""

import pytest

from app.components.plan.plan_figures import imbalance
from app.exports.stage_rows import stage_rows
from app.formats import NOTHING, stages_words
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Level
from backend.prediction import answer
from backend.prediction.question import Question
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import figures_of, text_of


def test_what_a_device_holds_is_said_of_all_its_stages(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    profile, cluster = backend.profiles.get(seeded.profile).profile, Cluster((Level(3, 1e10),))
    asked = Question(profile, cluster, planner="gpipe-balanced", schedule="zb-v")
    found = answer.rank(asked)[0].prediction
    cut, spent = found.plan.partition, found.stage_seconds
    assert len(cut.stages) == 6
    loads = [spent[0] + spent[5], spent[1] + spent[4], spent[2] + spent[3]]
    assert imbalance(found) == pytest.approx(max(loads) / (sum(loads) / 3) - 1)
    sends = stage_rows(profile, cluster, found)["sends"]
    assert [value == NOTHING for value in sends] == [False, False, True, False, False, True]
    kept = backend.plans.save(seeded.profile, cluster, found)
    page = open_page(Page.PLAN, plan=kept.id)
    most = found.memory_bytes.index(max(found.memory_bytes))
    together = sorted({most, 5 - most})
    assert figures_of(page)["Peak memory"][1] == stages_words(together)
    text = text_of(page)
    assert f"Stages {together[0]} and {together[1]} hold most" in text
    assert "2 stages on each device, as a V" in text
