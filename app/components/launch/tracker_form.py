"""In which experiment trackers a training is followed."""

from dataclasses import replace
from itertools import combinations

from app import services
from app.components.launch.fields import Fields
from app.session.state import Param
from backend.runs.request.spec import TrainSpec
from backend.runs.request.tracking import NONE, asked, written


def tracker_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """`spec` with what is chosen; unchanged where settings name no tracker."""
    trackers = services.backend().trackers
    titles = {name: tracker.title for name, tracker in trackers.known.items()}
    if not titles:
        return spec
    usual = ", ".join(titles[name] for name in trackers.usual) or "nowhere"
    some = [each for n in range(1, len(titles) + 1) for each in combinations(titles, n)]
    names = {"": f"as usual: {usual}", NONE: NONE if fields.bound else "nowhere"}
    for each in some:  # the link holds the words that are shown
        told = ", ".join(titles[name] for name in each)
        names[written(each)] = written(each) if fields.bound else told
    chosen = fields.choice("Experiment trackers", names, written(spec.trackers), Param.TRACKERS)
    return replace(spec, trackers=asked(chosen))
