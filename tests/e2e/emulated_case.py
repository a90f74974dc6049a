"""The published VGG-16 on 4 servers of 4, planned and really run on emulated devices."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Page, expect

from backend.bootstrap import Backend
from backend.cluster.presets import preset
from backend.prediction import answer
from backend.prediction.question import Question
from backend.profiles.files import read_profile_file
from tests.app import seed
from tests.e2e.conftest import settled
from tests.e2e.tour import Stop

PUBLISHED = Path(__file__).resolve().parents[2] / "../shared/profiles"
GRAPH = PUBLISHED / "vgg16" / "graph.txt"
MICROBATCH = 128  # the profile's own
CLUSTER = ("cluster-a", 4)
SCALE = "4"  # seconds of this machine for each of a V100: 16 ranks share few cores
NAME = "VGG-16 on 4 servers of 4 V100"
RATES = "Median error per action"
"""The last line of what is shown; the run's rates stand above it."""
STOP = Stop("vgg16-emulated", "run?id=1&window=0~3", RATES)
SEARCHING = "Cancel"
"""What stands beside the progress of a search."""
ASKED = "profile=1&cluster=cluster-a:4"


def keep_published(backend: Backend, models: Mapping[str, str], microbatch: int) -> None:
    """Keep published profiles in the order of `models`: the folder of each, and the zoo's model
    that it is kept with."""
    for name, definition in models.items():
        text = (PUBLISHED / name / "graph.txt").read_text()
        profile = read_profile_file(f"{name}.txt", text, microbatch)
        backend.profiles.add(profile, backend.definitions.add_zoo(definition).id)


def fill_import(page: Page) -> None:
    """The menu of Start with the file, its model and its microbatch, as a person fills it."""
    page.get_by_role("button", name="Import a profile").click()
    form = page.get_by_test_id("stPopoverBody")
    form.locator("input[type=file]").set_input_files(GRAPH)
    expect(form.get_by_placeholder("such as 128")).to_be_visible()  # the file has come
    settled(page)
    expect(form.get_by_role("button", name="Import")).to_be_disabled()  # its samples are unknown
    form.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="vgg16 ·").click()
    settled(page)
    form.get_by_test_id("stNumberInputField").fill(str(MICROBATCH))
    page.keyboard.press("Tab")
    expect(form.get_by_role("button", name="Import")).to_be_enabled()
    settled(page)


def choose_emulation(page: Page) -> None:
    """Launch with the place opened, and emulated devices asked for."""
    page.get_by_text("Where it runs").click()
    page.get_by_role("spinbutton", name="Emulation: seconds per profiled second").fill(SCALE)
    page.keyboard.press("Enter")
    settled(page)


AT_FIRST = (  # the first ten minutes: before there is anything
    Stop("newcomer-1-start", "start", "in four steps"),
    Stop("newcomer-2-import", "start", "in four steps", acts=fill_import),
)
NEWCOMER = (  # all of them, in their order
    *AT_FIRST,
    Stop("newcomer-3-plan", f"plan?{ASKED}", "Why this one", ends=SEARCHING),
    Stop("newcomer-4-why", f"plan?{ASKED}&memory=16e9", "Why this one", ends=SEARCHING),
    Stop("newcomer-5-schedules", f"schedules?{ASKED}", "Weight versions and staleness"),
    Stop("newcomer-6-plans", "compare?of=plans&plans=1,2", "What differs"),
    Stop("newcomer-7-what-if", f"what_if?{ASKED}", "What if", ends="clusters planned"),
    Stop("newcomer-8-launch", "launch?plan=1", "Values", acts=choose_emulation),
    Stop("newcomer-9-run", "run?id=1&window=0~3", RATES),
)


def run(home: Path) -> None:
    """Plan by `best`, keep data parallelism beside it, and run one segment of the best through a
    node agent, as `stageflow run` does."""
    with seed.settings(home):
        backend = seed.fresh()
        text = GRAPH.read_text()
        profile = read_profile_file("vgg16.txt", text, MICROBATCH)
        stored = backend.profiles.add(profile, backend.definitions.add_zoo("vgg16").id)
        cluster = preset(*CLUSTER)
        best, other = (
            answer.rank(Question(profile, cluster, planner=name))[0]
            for name in ("best", "data-parallel")
        )
        plan = backend.plans.save(stored.id, cluster, best.prediction)
        backend.plans.save(stored.id, cluster, other.prediction)
        command = ["run", "--plan", str(plan.id), "--emulate", SCALE, "--epochs", "1"]
        subprocess.run(
            [sys.executable, "-m", "app.cli", *command, "--name", NAME],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        measured = backend.runs.list(limit=1).runs[0].summary.samples_per_second or 0.0
        predicted = best.prediction.samples_per_second
        backend.close()
    print(f"{NAME}: {predicted:,.0f}/s predicted, {measured:,.0f}/s measured in emulation")
