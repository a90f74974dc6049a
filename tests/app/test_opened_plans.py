"""A kept plan is opened: the form asks for it as it is, so that what is changed is planned again
beside all else that it had."""

from dataclasses import replace

import pytest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Level
from backend.pipeline.codecs.catalog import AUTO
from backend.planning.plan import Plan
from backend.prediction import answer
from backend.prediction.question import Question
from backend.prediction.run_ahead import MOST_TRIED
from backend.runs.plans import StoredPlan
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of

SLOW = Cluster((Level(4, 1e8),))


def kept(backend: Backend, profile_id: int, **asked: object) -> StoredPlan:
    """The plan that a planner makes of what is asked, kept."""
    profile = backend.profiles.get(profile_id).profile
    question = Question(profile, SLOW, **asked)  # type: ignore[arg-type]
    return backend.plans.save(profile_id, SLOW, answer.rank(question)[0].prediction)


def changed(backend: Backend, stored: StoredPlan, **other: object) -> StoredPlan:
    """`stored` with these fields of its plan, kept beside it."""
    profile = backend.profiles.get(stored.profile_id).profile
    plan = replace(stored.plan, **other)  # type: ignore[arg-type]
    found = answer.by_hand(Question(profile, SLOW), plan).prediction
    assert found.plan == plan
    return backend.plans.save(stored.profile_id, SLOW, found)


def planned_again(backend: Backend, open_page: Open, stored: StoredPlan) -> Plan:
    """What is planned once the plan is opened and its memory is limited to more than it needs."""
    page = open_page(Page.PLAN, plan=stored.id)
    assert f"plan {stored.id}" in text_of(page)
    shown = figures_of(page)
    field = next(each for each in page.number_input if each.label.startswith("Memory per"))
    field.set_value(64.0).run()
    assert "plan" not in page.query_params
    assert figures_of(page)["Throughput, samples"] == shown["Throughput, samples"]
    button(page, "Save").click().run()
    return backend.plans.list()[0].plan


@pytest.mark.parametrize("depth", [0, 3])
def test_depth_and_codec_are_asked_for_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open, depth: int
) -> None:
    asked = {"planner": "straight", "schedule": "pipedream", "codec": "int8", "run_ahead": depth}
    stored = kept(backend, seeded.profile, **asked)
    page = open_page(Page.PLAN, plan=stored.id)
    assert (param(page, "run-ahead"), param(page, "codec")) == (str(depth), "int8")
    assert f"run ahead {depth}, codec int8" in text_of(page)
    again = planned_again(backend, open_page, stored)
    assert (again.run_ahead, again.codecs) == (depth, stored.plan.codecs)
    assert again.partition == stored.plan.partition


def test_a_depth_beyond_those_that_a_search_tries_is_a_choice_of_the_form(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    far = MOST_TRIED + 3
    stored = kept(backend, seeded.profile, planner="straight", schedule="pipedream", run_ahead=far)
    page = open_page(Page.PLAN, plan=stored.id)
    box = next(each for each in page.selectbox if each.label == "Run ahead")
    assert (box.value, box.options[-1]) == (str(far), f"{far} per hop")
    assert planned_again(backend, open_page, stored).run_ahead == far


def test_codecs_that_differ_between_cuts_are_chosen_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    plain = kept(backend, seeded.profile, planner="straight", schedule="1f1b-flush")
    stored = changed(backend, plain, codecs=("int8", "", "bf16"))
    page = open_page(Page.PLAN, plan=stored.id)
    assert f"plan {stored.id}" in text_of(page)
    assert param(page, "codec") == AUTO
    opened = open_page(Page.PLAN, plan=plain.id)
    assert param(opened, "codec") == "none"


def test_split_layers_are_asked_for_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    asked = {"planner": "data-parallel", "schedule": "gpipe", "split_channels": True}
    stored = kept(backend, seeded.profile, **asked)
    assert stored.plan.splits
    page = open_page(Page.PLAN, plan=stored.id)
    assert page.toggle(key="split-channels").value
    assert planned_again(backend, open_page, stored).splits == stored.plan.splits
    whole = open_page(Page.PLAN, plan=seeded.plan)
    assert not whole.toggle(key="split-channels").value


def test_chunks_and_parallel_pipelines_are_asked_for_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    asked = {"planner": "gpipe-balanced", "schedule": "interleaved", "chunks": 3}
    stored = kept(backend, seeded.profile, **asked)
    page = open_page(Page.PLAN, plan=stored.id)
    assert param(page, "chunks") == "3"
    assert planned_again(backend, open_page, stored).partition == stored.plan.partition
    plain = kept(backend, seeded.profile, planner="straight", schedule="pipedream")
    shared = changed(backend, plain, schedule="afp", run_ahead=0, num_pipelines=2, batch=4)
    assert param(open_page(Page.PLAN, plan=shared.id), "pipelines") == "2"
