"""Which runs can be measured against each other: a best is only among those of the same yardstick.

The files of a data set are known by their path alone, whatever is in them by now.
"""

from collections.abc import Hashable, Sequence
from enum import StrEnum

from backend.comparison.runs import best, samples_per_update
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState

OWN_DATA = ("", "synthetic", "definition")
"""Forms of data that the model's definition makes."""


class Yardstick(StrEnum):
    """What runs must have in common, for one to be the better.

    data    learnt from, really or on emulated devices
    metric  the data, and the definition, whose loss and metrics are its own
    update  the data and the samples of an update
    work    the data, and how far they train; only what has succeeded has done it
    """

    DATA = "data"
    METRIC = "metric"
    UPDATE = "update"
    WORK = "work"


def measured_by(run: Run, yardstick: Yardstick) -> Hashable:
    """The same for two runs that can be compared; None where a run can be with no other."""
    spec = run.spec
    if not isinstance(spec, TrainSpec):
        return None
    model = spec.definition_id
    data = (spec.data, model if spec.data.name in OWN_DATA else None, bool(spec.emulate))
    match yardstick:
        case Yardstick.DATA:
            return data
        case Yardstick.METRIC:
            return data, model
        case Yardstick.UPDATE:
            return data, samples_per_update(run)
        case Yardstick.WORK:
            target = (spec.epochs, spec.target_accuracy, spec.target_loss, spec.stop)
            return (data, target) if run.state is RunState.SUCCEEDED else None


def best_alike(
    runs: Sequence[Run], values: Sequence[float | None], yardstick: Yardstick, *, largest: bool
) -> set[int]:
    """The places of the best among those that can be compared, of each such group: see `best`."""
    groups: dict[Hashable, list[int]] = {}
    for place, run in enumerate(runs):
        key = measured_by(run, yardstick)
        groups.setdefault(("alone", place) if key is None else key, []).append(place)
    return {
        places[won]
        for places in groups.values()
        for won in best([values[place] for place in places], largest=largest)
    }


def differ_in(runs: Sequence[Run], yardstick: Yardstick) -> bool:
    """Whether some of the runs cannot be compared so."""
    return len({measured_by(run, yardstick) for run in runs}) > 1
