"""Launch: a run again with changes, a training by a kept plan, links with values in them."""

from dataclasses import replace

import pytest
from sqlalchemy import update
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Expander

from app.charts.rate import rate_points
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Level
from backend.planning.sites import OTHER_LABELS, Sites
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.sample_specs import PictureSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, StopSpec, TrainSpec
from backend.runs.request.text_spec import TextSpec
from backend.storage.tables.tables import ArtifactRow
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of


def test_without_a_plan_the_page_says_what_to_do(backend: Backend, open_page: Open) -> None:
    assert "No saved plan yet" in text_of(open_page(Page.LAUNCH))
    assert "No plan 99" in text_of(open_page(Page.LAUNCH, plan=99))


def test_a_training_is_cloned_with_changes(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, run=seeded.succeeded)
    assert page.number_input(key="epochs").value == 4
    assert page.number_input(key="target").value == 95.0
    page.number_input(key="lr").set_value(0.03)
    page.text_input(key="name").set_value("three times the rate").run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    before = backend.runs.get(seeded.succeeded)
    assert param(page, "id") == str(run.id)
    assert (run.name, run.origin_id) == ("three times the rate", before.id)
    assert isinstance(run.spec, TrainSpec)
    assert isinstance(before.spec, TrainSpec)
    assert run.spec.optimizer.learning_rate == 0.03
    assert (run.spec.plan, run.spec.epochs) == (before.spec.plan, before.spec.epochs)


def test_evaluations_between_the_ends_of_epochs_are_asked_for(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.number_input(key="evaluate").set_value(50)
    page.number_input(key="patience").set_value(4)
    page.text_input(key="watch").set_value("accuracy")
    page.number_input(key="max-updates").set_value(900)
    page.number_input(key="max-seconds").set_value(3600.0).run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert spec.evaluate == 50
    assert spec.stop == StopSpec(4, "accuracy", "", 900, 3600.0)


def test_how_weights_are_updated_is_asked_for(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    """What a rule has not is not asked of it; the picture says for how many updates it is."""
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    assert "betas" not in [field.key for field in page.text_input]
    assert "for 100 per epoch: how many there are is known with the data" in text_of(page)
    page.selectbox(key="data").set_value("synthetic")
    page.selectbox(key="optimizer").set_value("lion").run()
    assert "eps" not in [field.key for field in page.text_input]
    assert "for 64 per epoch." in text_of(page)
    page.text_input(key="betas").set_value("0.95, 0.98")
    page.text_input(key="groups").set_value("head=10; *.bias=two").run()
    assert "is not a group of weights" in " ".join(found.value for found in page.error)
    page.text_input(key="groups").set_value("head=10; *.bias=2,0")
    page.number_input(key="weight-decay").set_value(0.1)
    page.selectbox(key="decay").set_value("inverse-sqrt")
    page.number_input(key="warm-up-updates").set_value(50)
    page.number_input(key="clip").set_value(0.5)
    page.selectbox(key="clip-by").set_value("stage")
    page.number_input(key="ema").set_value(0.999).run()
    assert not page.error
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert spec.optimizer == OptimizerSpec(
        "lion",
        learning_rate=1e-4,
        weight_decay=0.1,
        clip_norm=0.5,
        decay="inverse-sqrt",
        warm_up_updates=50,
        betas=(0.95, 0.98),
        decayed="matrices",
        groups=(ParameterGroup("head", 10.0), ParameterGroup("*.bias", 2.0, 0.0)),
        ema=0.999,
        clip_by="stage",
    )


def test_the_rate_is_drawn_over_all_updates_that_there_may_be(
    backend: Backend, seeded: seed.Seeded
) -> None:
    plan = backend.plans.get(seeded.plan).plan
    spec = TrainSpec(seeded.definition, plan, epochs=5)
    rule = OptimizerSpec("adam", 0.2, decay="linear", warm_up_updates=10)
    points = rate_points(replace(spec, optimizer=rule, stop=StopSpec(updates=60)), 20)
    assert [point["update"] for point in points] == list(range(60))
    assert points[5]["rate"] == pytest.approx(0.1)
    assert points[35]["rate"] == pytest.approx(0.1)
    many = rate_points(replace(spec, epochs=100), 50)
    assert (len(many), many[-1]["update"]) == (240, 4999)


def test_a_profile_is_cloned(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, run=seeded.profiled)
    page.number_input(key="microbatch").set_value(32).run()
    button(page, "Start run").click().run()
    assert backend.runs.list(limit=1).runs[0].spec == ProfileSpec(seeded.definition, 32, 20)


def test_a_link_says_every_value(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, run=seeded.failed, epochs=7, lr=0.002, optimizer="adam")
    assert page.number_input(key="epochs").value == 7
    assert page.number_input(key="lr").value == 0.002
    assert page.selectbox(key="optimizer").value == "adam"


def test_the_first_choices_are_what_the_plan_was_made_for(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    """Also where another plan is chosen on the page."""
    profile, straight = backend.profiles.get(seeded.profile), backend.plans.get(seeded.plan)
    asked = Question(profile.profile, straight.cluster, optimizer="adamw+ema")
    made = asked.under(state_precision="bfloat16-masters").predict(straight.plan)
    kept = backend.plans.save(profile.id, straight.cluster, made)
    page = open_page(Page.LAUNCH, plan=kept.id)
    wanted = ["adamw", 0.001, 0.999, "bfloat16-masters", "bfloat16"]
    assert _state(page) == wanted
    page.selectbox[0].set_value(straight.id).run()
    assert _state(page) == ["momentum", 0.01, 0.0, "float32", "float32"]
    page.selectbox[0].set_value(kept.id).run()
    assert _state(page) == wanted
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.plan_id, spec.optimizer.planned) == (kept.id, "adamw+ema")
    assert (spec.state_precision, spec.precision) == ("bfloat16-masters", "bfloat16")
    linked = open_page(Page.LAUNCH, plan=kept.id, optimizer="sgd")
    assert _state(linked) == ["sgd", 0.01, *wanted[2:]]


def _state(page: AppTest) -> list[object]:
    return [
        page.selectbox(key="optimizer").value,
        page.number_input(key="lr").value,
        page.number_input(key="ema").value,
        page.selectbox(key="state-precision").value,
        page.selectbox(key="precision").value,
    ]


def test_data_of_the_node_are_chosen(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="data").set_value("csv").run()
    page.text_input(key="path").set_value("plants/leaves.csv")
    page.text_input(key="targets").set_value("species")
    page.selectbox(key="last").set_value("keep")
    page.text_input(key="buckets").set_value("8, 16")
    page.number_input(key="held-out").set_value(10).run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert spec.data == DataSpec(
        "csv",
        path="plants/leaves.csv",
        targets=("species",),
        held_out=0.1,
        last="keep",
        buckets=(8, 16),
    )


def test_a_tokenizer_and_its_samples_are_chosen(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="data").set_value("jsonl").run()
    page.text_input(key="path").set_value("talk.jsonl")
    page.text_input(key="tokenizer").set_value("gpt").run()
    page.toggle(key="packing").set_value(True)
    page.toggle(key="answers").set_value(True)
    page.number_input(key="length").set_value(128).run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    text = TextSpec("gpt", packing=True, answers=True)
    assert spec.data == DataSpec("jsonl", path="talk.jsonl", length=128, text=text)


def test_pictures_are_augmented_and_a_wrong_word_starts_nothing(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="data").set_value("digits").run()
    page.text_input(key="augment").set_value("crop=1, turn=2").run()
    assert "not augmented by turn" in page.error[0].value
    assert button(page, "Start run").disabled
    page.text_input(key="augment").set_value("crop=1, flip").run()
    page.text_input(key="normalise").set_value("0.3 / 0.4").run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert spec.data.pictures == PictureSpec(1, True, mean=(0.3,), deviation=(0.4,))


def test_what_cannot_be_read_is_told_below_its_field_and_starts_nothing(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    wrong = {
        "betas": ("0.9", "Betas of '0.9' are not two numbers"),
        "eps": ("-1", "AdamW with eps -1"),
        "groups": ("head", "'head' is not a group of weights"),
        "buckets": ("8, x", "A bucket of 'x' is not a length"),
        "template": ("{% for", "The chat template cannot be read"),
        "watch": ("=", "No metric is named '='"),
    }
    asked = {"optimizer": "adamw", "data": "JSON lines", "path": "a.jsonl", "tokenizer": "words"}
    asked["target-loss"] = "1.5"
    page = open_page(Page.LAUNCH, plan=seeded.plan, patience=2, target=90, **asked)
    for key, (text, _) in wrong.items():
        page.text_input(key=key).set_value(text)
    page.number_input(key="warm-up").set_value(1.0)
    page.number_input(key="warm-up-updates").set_value(5)
    page.selectbox(key="clip-by").set_value("stage").run()
    said = "\n".join(found.value for found in page.error)
    more = ("Two targets", "A warm-up of 5 updates and 1 epochs", "no largest norm is given")
    assert [words for _, words in wrong.values() if words not in said] == []
    assert [words for words in more if words not in said] == []
    assert button(page, "Start run").disabled
    assert [page.text_input(key=key).value for key in wrong] == [text for text, _ in wrong.values()]
    for key in wrong:
        page.text_input(key=key).set_value("accuracy" if key == "watch" else "")
    page.number_input(key="warm-up").set_value(0.0)
    page.number_input(key="target").set_value(0.0)
    page.selectbox(key="clip-by").set_value("model").run()
    assert not page.error
    assert not button(page, "Start run").disabled


def test_precision_and_clipping_are_chosen(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan, clip="0.5")
    page.selectbox(key="precision").set_value("float16")
    page.selectbox(key="decay").set_value("cosine").run()
    assert "never flushes" in page.error[0].value
    assert button(page, "Start run").disabled
    page.number_input(key="clip").set_value(0.0)
    page.selectbox(key="precision").set_value("bfloat16").run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.precision, spec.optimizer.clip_norm) == ("bfloat16", None)
    assert spec.optimizer.decay == "cosine"


def test_the_precision_of_state_is_chosen_and_shown(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="state-precision").set_value("bfloat16-masters").run()
    button(page, "Start run").click().run()
    assert "does not go together with compute in float32" in page.error[0].value
    page.selectbox(key="precision").set_value("bfloat16").run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.precision, run.spec.state_precision) == ("bfloat16", "bfloat16-masters")
    assert "state bfloat16, float32 masters" in text_of(open_page(Page.RUN, id=run.id))
    again = open_page(Page.LAUNCH, run=run.id)
    assert again.selectbox(key="state-precision").value == "bfloat16-masters"
    assert "float32 masters" not in text_of(open_page(Page.RUN, id=seeded.succeeded))


def test_state_is_sharded_over_replicas_where_that_is_switched_on(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    kept = seed.another_plan(backend, backend.profiles.get(seeded.profile))
    single = open_page(Page.LAUNCH, plan=seeded.plan)
    assert not [each for each in single.toggle if each.label == "Sharded state"]
    page = open_page(Page.LAUNCH, plan=kept.id)
    page.toggle(key="shard-state").set_value(True).run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert run.spec.plan == replace(kept.plan, shard_state=True)
    assert "state sharded over replicas" in text_of(open_page(Page.RUN, id=run.id))
    again = open_page(Page.LAUNCH, run=run.id)
    assert again.toggle(key="shard-state").value
    assert "sharded over replicas" not in text_of(open_page(Page.RUN, id=seeded.succeeded))


def test_the_head_of_local_losses_is_chosen_where_a_plan_has_some(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    others = open_page(Page.LAUNCH, plan=seeded.plan).selectbox
    assert "Local head" not in {each.label for each in others}
    profile, straight = backend.profiles.get(seeded.profile), backend.plans.get(seeded.plan)
    plan = straight.prediction.plan.under("local", 4)
    local = predict(profile.profile, straight.cluster, plan)
    kept = backend.plans.save(profile.id, straight.cluster, local)
    page = open_page(Page.LAUNCH, plan=kept.id)
    assert page.selectbox(key="local-head").value == ""
    page.selectbox(key="local-head").set_value("similarity").run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.plan.schedule, run.spec.local_head) == ("local", "similarity")
    how = {"profile": seeded.profile, "planner": "gpipe-balanced", "schedule": "local"}
    assert "Each stage learns from a loss of its own" in text_of(open_page(Page.PLAN, **how))


def test_a_launch_on_sites_warns_of_data_that_are_split_by_label(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    assert OTHER_LABELS not in text_of(open_page(Page.LAUNCH, plan=seeded.plan))
    profile, straight = backend.profiles.get(seeded.profile), backend.plans.get(seeded.plan)
    plan = replace(straight.prediction.plan, num_pipelines=2, sites=Sites("gaia", devices=2))
    cluster = Cluster((Level(2, 1e10), Level(2, 1e7, sites=True)))
    kept = backend.plans.save(profile.id, cluster, predict(profile.profile, cluster, plan))
    assert OTHER_LABELS in text_of(open_page(Page.LAUNCH, plan=kept.id))


def test_weights_of_the_node_may_be_a_base_under_a_new_head(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    assert not [each for each in page.toggle if each.label == "Partial weights"]
    page.selectbox(key="weights").set_value("node").run()
    page.text_input(key="weights-path").set_value(" llama/base ")
    page.toggle(key="weights-partial").set_value(True).run()
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.weights_path, run.spec.weights_partial) == ("llama/base", True)
    again = open_page(Page.LAUNCH, run=run.id)
    assert again.selectbox(key="weights").value == "node"
    assert again.text_input(key="weights-path").value == "llama/base"


def test_the_trained_model_of_a_run_is_a_beginning(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    assert [*page.selectbox(key="weights").options] == [
        "random, from the seed",
        "files on the node",
    ]
    with backend.database.write() as session:
        session.execute(update(ArtifactRow).values(name="model.safetensors"))
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="weights").set_value(f"run:{seeded.succeeded}").run()
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert spec.weights_run == seeded.succeeded


def test_data_without_a_path_are_refused(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    page.selectbox(key="data").set_value("images").run()
    button(page, "Start run").click().run()
    assert "need a path" in page.error[0].value


def test_a_training_by_a_kept_plan(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.plan_id, run.origin_id) == (seeded.plan, None)


def test_a_run_or_plan_that_is_not_there(seeded: seed.Seeded, open_page: Open) -> None:
    assert "o run 99" in text_of(open_page(Page.LAUNCH, run=99))
    assert "o plan 99" in text_of(open_page(Page.LAUNCH, plan=99))


def test_the_run_page_leads_here_and_retries(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=seeded.failed)
    button(page, "Run it again").click().run()
    again = backend.runs.list(limit=1).runs[0]
    assert param(page, "id") == str(again.id)
    assert again.origin_id == seeded.failed
    button(page, "Clone").click().run()
    assert page.title[0].value == "Launch broken loss again"


def test_the_run_page_takes_notes(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUN, id=seeded.succeeded)
    button(page, "Star").click().run()
    (tags,) = [field for field in page.text_input if field.label.startswith("Tags")]
    tags.set_value("baseline, digits")
    page.text_area[0].set_value("to be beaten <b>")
    button(page, "Save").click().run()
    run = backend.runs.get(seeded.succeeded)
    assert (run.starred, run.tags, run.note) == (True, ("baseline", "digits"), "to be beaten <b>")
    assert "to be beaten" in text_of(page)


def test_sections_that_are_open_stay_where_they_are(seeded: seed.Seeded, open_page: Open) -> None:
    """The browser knows an open section by its place: a value that adds fields moves none."""
    page = open_page(Page.LAUNCH, plan=seeded.plan)
    before = sections(page)
    assert len(before) == 5
    page.selectbox(key="data").set_value("jsonl").run()
    page.text_input(key="tokenizer").set_value("words").run()
    page.selectbox(key="optimizer").set_value("adamw").run()
    assert not page.exception
    assert sections(page) == before


def sections(page: AppTest) -> dict[str, tuple[int, ...]]:
    """The place of each, as the browser is told it: from the page's main part inwards."""
    found: dict[str, tuple[int, ...]] = {}

    def visit(block: Block, place: tuple[int, ...]) -> None:
        for number, child in block.children.items():
            if isinstance(child, Expander):
                found[child.label] = (*place, number)
            if isinstance(child, Block):
                visit(child, (*place, number))

    visit(page.main, ())
    return found
