"""Plan: empty, proposals, alternatives, clusters good and broken, saving, launching."""

import re
from dataclasses import replace

from app.differences import UNKNOWN_PRICES, UNKNOWN_WATTS
from app.formats import SPACE, plain
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.device_record import DeviceRecord, FlopRates
from backend.cluster.document import read_cluster, write_cluster
from backend.pipeline.codecs.catalog import CODECS
from backend.prediction.trainers.forms import PLAN_FORMS, TRAINERS
from backend.profiles.profile import ONE_LAYER, ModelGraph
from backend.runs.request.spec import TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of

SERVERS = Cluster((Level(2, 12e9), Level(2, 1.25e9)), Device("V100", 16e9))


def test_without_profiles_the_page_leads_to_the_models(backend: Backend, open_page: Open) -> None:
    assert "No profile yet" in text_of(open_page(Page.PLAN))


def test_the_best_proposal_is_shown_with_its_reason(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, planner="straight")
    shown = figures_of(page)
    assert shown["Throughput, samples"][1].endswith("data parallel")
    assert shown["Staleness"] == ("1 update", "2 weight versions")
    assert len(page.radio[0].options) > 1
    assert "bottleneck" in page.radio[0].proto.captions[0]
    text = text_of(page)
    assert "Why this one" in text
    assert "No plan takes less than" in text


def test_another_alternative_can_be_chosen_and_is_in_the_url(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN)
    before = figures_of(page)["Throughput, samples"]
    page.radio[0].set_value("even-split").run()
    assert param(page, "planner") == "even-split"
    assert figures_of(page)["Throughput, samples"] != before
    again = open_page(Page.PLAN, planner="even-split")
    assert figures_of(again) == figures_of(page)


def test_a_preset_with_its_count_is_in_the_url(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, cluster="cluster-a:2")
    assert "on 8 × V100" in page.title[0].value


def test_a_schedule_that_flushes_has_a_batch_and_no_staleness(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, schedule="1f1b-flush", batch=8)
    shown = figures_of(page)
    (minibatch,) = (metric for metric in page.metric if metric.label == "Per minibatch")
    assert f"Of {8 * seed.SAMPLES}{SPACE}samples" in minibatch.help
    low, high = (float(end.split()[0]) for end in minibatch.delta.split(" to "))
    assert low < high
    assert shown["Staleness"][0] == "none"


def test_a_cluster_of_ones_own_travels_in_the_url(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, cluster=write_cluster(SERVERS))
    assert "on 4 × V100" in page.title[0].value
    assert "free" in figures_of(page)["Peak memory"][1]


def test_broken_yaml_names_its_line_and_the_inputs_stay(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster="levels: [\n  - oops")
    assert "line 2" in page.error[0].value
    assert not page.exception
    assert [box.label for box in page.selectbox if box.label == "Schedule"]


def levels(page):
    return next(area for area in page.text_area if area.label.startswith("Levels"))


def test_yaml_typed_into_the_page_is_checked_before_it_is_used(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster=write_cluster(SERVERS))
    levels(page).set_value("levels:\n  - {count: 4}")
    [form for form in page.button if form.label == "Use this cluster"][1].click().run()
    assert "bandwidth is missing" in page.error[0].value
    levels(page).set_value("levels:\n  - {count: 3, bandwidth: 1e9}")
    [form for form in page.button if form.label == "Use this cluster"][1].click().run()
    assert "on 3 × cpu" in page.title[0].value


def test_a_model_that_fits_nowhere_is_said_with_its_numbers(
    seeded: seed.Seeded, open_page: Open
) -> None:
    tiny = write_cluster(Cluster((Level(2, 1e9),), Device("toy", 1000)))
    page = open_page(Page.PLAN, cluster=tiny)
    assert page.error
    assert not page.exception
    assert page.title[0].value == "Plan"


def test_a_model_of_one_layer_says_so_once(backend: Backend, open_page: Open) -> None:
    whole = seed.a_profile()
    note = f"{ONE_LAYER}: net.py, line 3: it decides by values."
    layer = replace(whole.layers[0], name="net")
    one = replace(whole, graph=ModelGraph.chain((layer,)), notes=(note,))
    stored = backend.profiles.add(one, backend.definitions.add_zoo("vgg_digits").id)
    page = open_page(Page.PLAN, profile=stored.id)
    assert [found.value for found in page.info] == [plain(note)]
    plans = next(radio for radio in page.radio if radio.label == "Plans")
    assert len(plans.options) > 1
    assert not page.exception


def test_saving_keeps_the_plan_and_it_opens_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster=write_cluster(SERVERS), planner="even-split")
    before = figures_of(page)
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    assert saved.cluster == SERVERS
    assert saved.plan.planner == "even-split"
    assert figures_of(open_page(Page.PLAN, plan=saved.id)) == before


def test_a_kept_plan_opens_with_the_state_that_it_was_made_for(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    made = {"optimizer": "adamw", "averaged": "true", "state-precision": "bfloat16-masters"}
    asked = {"planner": "straight", "schedule": "1f1b-flush", "cluster": "cluster-a:1"}
    page = open_page(Page.PLAN, **asked, **made)
    before = figures_of(page)["Peak memory"]
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    assert saved.prediction.optimizer == "adamw+ema"
    opened = open_page(Page.PLAN, plan=saved.id)
    assert figures_of(opened)["Peak memory"] == before
    assert f"plan {saved.id}" in text_of(opened)
    plain_one = open_page(Page.PLAN, plan=seeded.plan)
    assert not plain_one.toggle(key="averaged").value


def test_a_kept_plan_on_sites_opens_on_all_of_them(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    """The others are asked for sites too, and every device has its stage."""
    rule = "diloco:every=4,rate=0.7,momentum=0.9"
    cluster = Cluster((Level(2, 1e10), Level(2, 1e7, sites=True)))
    asked = {"planner": "straight", "schedule": "gpipe", "cluster": write_cluster(cluster)}
    page = open_page(Page.PLAN, **asked, sites=rule)
    before = figures_of(page)
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    opened = open_page(Page.PLAN, plan=saved.id)
    assert figures_of(opened) == before
    assert f"plan {saved.id}" in text_of(opened)
    assert param(opened, "sites") == rule
    assert "devices work" not in text_of(opened)


def test_a_kept_plan_gets_another_name_and_goes(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    first = backend.plans.list()[-1]
    kept = backend.plans.save(first.profile_id, first.cluster, first.prediction, "mine")
    page = open_page(Page.PLAN, plan=kept.id)
    next(field for field in page.text_input if field.value == "mine").set_value("ours")
    next(field for field in page.text_input if field.label == "Tags").set_value("b, paper")
    page.text_area[0].set_value("for Monday")
    next(b for b in page.button if b.label == "Save changes").click().run()
    told = backend.plans.get(kept.id)
    assert (told.name, told.note, told.tags) == ("ours", "for Monday", ("b", "paper"))
    page = open_page(Page.PLAN, plan=kept.id)
    assert f"**ours**, plan {kept.id}" in text_of(page)
    assert ":blue-badge[paper]" in text_of(page)
    assert "for Monday" in text_of(page)
    button(page, "Delete the plan").click().run()
    assert not page.exception
    assert kept.id not in {plan.id for plan in backend.plans.list()}
    page = open_page(Page.PLAN, plan=seeded.plan)  # runs were launched by this one
    button(page, "Delete the plan").click().run()
    assert "needed by run" in text_of(page)


def test_launching_keeps_the_plan_submits_the_run_and_opens_it(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN)
    fields = {field.label: field for field in page.number_input}
    fields["Epochs, at most"].set_value(3)
    fields["Stop at accuracy, %"].set_value(95.0)
    button(page, "Start run").click().run()
    run = backend.runs.list().runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert (run.spec.epochs, run.spec.target_accuracy) == (3, 0.95)
    assert run.spec.plan_id == backend.plans.list()[0].id
    assert f"run {run.id}" in page.title[0].value


def test_a_cluster_described_in_the_form_is_used(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, cluster=write_cluster(SERVERS))
    fields = {field.label: field for field in page.number_input}
    fields["Devices per server"].set_value(3)
    fields["Servers"].set_value(1)
    fields["Power at work, W"].set_value(240.0)
    fields["Power while it waits, W"].set_value(40.0)
    next(form for form in page.button if form.label == "Use this cluster").click().run()
    assert "on 3 × V100" in page.title[0].value
    device = read_cluster(param(page, "cluster")).device
    assert (device.watts, device.idle_watts) == (240.0, 40.0)
    assert re.search(
        r"A sample takes [\d.]+ \w?J\W+\d devices? draw", text_of(page).replace("\u00a0", " ")
    )
    assert "GB/s between" not in text_of(page)


def test_the_data_sheet_of_a_device_is_written_in_the_form(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(
        Page.PLAN, cluster=write_cluster(SERVERS), planner="straight", device="cluster"
    )
    fields = {field.label: field for field in page.number_input}
    fields["TFLOP/s in float32"].set_value(0.5)
    fields["Memory, GB/s"].set_value(19.2)
    next(form for form in page.button if form.label == "Use this cluster").click().run()
    assert not page.exception
    record = read_cluster(param(page, "cluster")).device.record
    assert record == DeviceRecord(FlopRates(0.5e12), 19.2e9)
    next(form for form in page.button if form.label == "Use this cluster").click().run()
    assert read_cluster(param(page, "cluster")).device.record == record


def test_plans_are_ranked_by_energy_where_watts_are_known(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster="dgx-h100:1", **{"rank-by": "energy", "floor": 0.5})
    assert not page.exception
    text = text_of(page).replace("\u00a0", " ")
    assert "ranked by energy, of plans with 50 % of the speed or more" in text
    captions = [each.replace("\u00a0", " ") for each in page.radio[0].proto.captions]
    assert all(each.startswith("**Energy per sample**: at most ") for each in captions)
    assert "no other plan is as good in all of these" in text
    unknown = open_page(Page.PLAN, **{"rank-by": "energy"})
    assert "no other plan is as good" not in text_of(unknown).replace("\u00a0", " ")
    assert "Energy per sample" not in unknown.radio[0].proto.captions[0]
    assert UNKNOWN_WATTS in text_of(unknown)


def test_plans_are_ranked_by_money_where_prices_are_known(
    seeded: seed.Seeded, open_page: Open
) -> None:
    priced = write_cluster(Cluster((Level(4, 1e9),), Device("cpu", price=2.0)))
    page = open_page(Page.PLAN, cluster=priced, **{"rank-by": "money", "floor": 0.5})
    assert not page.exception
    text = text_of(page).replace("\u00a0", " ")
    assert "ranked by money, of plans with 50 % of the speed or more" in text
    captions = [each.replace("\u00a0", " ") for each in page.radio[0].proto.captions]
    costs = [float(each.split("**: ")[1].split(" ")[0]) for each in captions]
    speeds = [float(each.split("  \n**")[1].split("/s")[0].replace(",", "")) for each in captions]
    enough = [c for c, s in zip(costs, speeds, strict=True) if s >= max(speeds) / 2]
    assert costs[: len(enough)] == sorted(enough)
    unknown = open_page(Page.PLAN, **{"rank-by": "money"})
    assert "Money per million" not in unknown.radio[0].proto.captions[0]
    assert UNKNOWN_PRICES in text_of(unknown)


def test_sites_exchange_by_the_rule_that_is_asked_for(seeded: seed.Seeded, open_page: Open) -> None:
    cities = Cluster((Level(2, 12e9), Level(2, 1e7, sites=True)), Device("V100", 16e9))
    asked = {"cluster": write_cluster(cities), "planner": "straight"}
    text = text_of(open_page(Page.PLAN, **asked, sites="diloco:every=100")).replace("\\", "")
    assert "2 sites (diloco:every=100" in text
    assert "Where each site has samples of other labels" in text
    assert "ahead of another by 100 updates at most" in text
    unknown = text_of(open_page(Page.PLAN, **asked, sites="gossip")).replace("\\", "")
    assert "Choose one of: elastic, diloco, gaia" in unknown
    whole = open_page(Page.PLAN, cluster=write_cluster(SERVERS), sites="diloco")
    assert not whole.exception
    assert "The cluster has no sites" in text_of(whole)


def test_a_cluster_is_kept_by_name_and_chosen_by_it(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster=write_cluster(SERVERS))
    for name in ("our room: the new one", "our room"):
        field = next(f for f in page.text_input if f.placeholder.startswith("such as"))
        field.set_value(name)
        button(page, "Save this cluster").click().run()
        assert not page.exception
        assert ("cannot name a cluster" in text_of(page)) == (":" in name)
    (kept,) = backend.clusters.list()
    assert (kept.name, kept.cluster) == ("our room", SERVERS)
    assert "Saved as **our room**" in text_of(page)
    page = open_page(Page.PLAN, cluster="cluster-a:2")
    box = next(box for box in page.selectbox if box.label == "Cluster")
    assert box.options[0] == "our room"
    box.select("our room").run()
    assert param(page, "cluster") == write_cluster(SERVERS)
    assert "on 4 × V100" in page.title[0].value
    page = open_page(Page.PLAN, cluster="our room")
    assert param(page, "cluster") == write_cluster(SERVERS)
    assert "on 4 × V100" in page.title[0].value


def test_choosing_another_preset_changes_the_plan(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN)
    [box] = [box for box in page.selectbox if box.label == "Cluster"]
    box.set_value("cluster-b").run()
    assert "× V100" in page.title[0].value
    assert not page.exception


def test_what_the_url_names_and_is_not_there_is_said(seeded: seed.Seeded, open_page: Open) -> None:
    assert "o plan 99" in text_of(open_page(Page.PLAN, plan=99))
    for given in ({"schedule": "nonsense"}, {"planner": "nobody"}, {"profile": "x"}):
        page = open_page(Page.PLAN, **given)
        ((what, value),) = given.items()
        assert f"No {what} '{value}'" in text_of(page)
        assert not page.exception
        assert not page.error


def test_the_predicted_timeline_is_also_a_table(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, planner="pipedream")
    page.toggle(key="table").set_value(True).run()
    table = next(found.value for found in page.dataframe if "takes" in found.value.columns)
    assert {"forward", "backward"} <= set(table["action"])
    assert not page.exception


def test_the_program_is_taken_away_in_the_forms_that_can_say_it(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, planner="straight", schedule="1f1b-flush", batch=4)
    forms = [b for b in page.get("download_button") if "program-" in b.proto.id]
    assert len(forms) == len(PLAN_FORMS)
    (barred,) = [button for button in forms if button.proto.disabled]
    assert "program-megatron" in barred.proto.id
    assert "2 lists of numbered layers" in barred.proto.help
    page = open_page(Page.PLAN, planner="straight", schedule="pipedream")
    barred, *others = [b for b in page.get("download_button") if b.proto.disabled]
    assert "program-csv" in barred.proto.id
    assert len(others) == len(TRAINERS)
    assert all("keeps versions of the weights" in each.proto.help for each in others)
    assert "one batch" in barred.proto.help


def test_every_codec_is_offered_with_what_it_does(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, planner="even-split", codec="top10")
    (offered,) = (each for each in page.selectbox if each.label == "Codec of messages")
    titles = [member.title for member in CODECS.values()]
    assert offered.options[2:] == titles
    assert all(f"- **{member.title}**: {member.note}" in offered.help for member in CODECS.values())
    said = text_of(page).replace("\u00a0", " ")
    assert "Messages are coded as largest 10 % of each sample" in said
