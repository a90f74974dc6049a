"""What differs between two plans, and of a run from the last one and from its plan; what
plans are ranked by. In words."""

from collections.abc import Callable, Mapping, Sequence

from app.formats import (
    NOTHING,
    bandwidth,
    change,
    count,
    duration,
    joules,
    number,
    percent,
    rate,
    seconds,
    size,
    times,
)
from app.naming import MOST_RANKS, planner_name, rank_names
from backend.comparison.aims import Aim, Fewest, SampleFigure
from backend.comparison.last_run import FigureBeside
from backend.comparison.other_links import OtherLinks
from backend.comparison.plans import MovedLayers, PlanFact, PlanStage, StagePair, Value
from backend.comparison.stragglers import Paces
from backend.comparison.to_target import Target, TimeToTarget
from backend.prediction.answer import Answer
from backend.prediction.cost import MILLION
from backend.prediction.energy import Energy
from backend.profiles.devices import DEVICES
from backend.runs.events import ACCURACY
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

FORMS: Mapping[str, Callable[[float | None], str]] = {
    "throughput": rate,
    "seconds per minibatch": seconds,
    "bubble": percent,
    "peak memory": size,
    "sent per minibatch": size,
    "sent per sample": size,
}
"""How measured facts are written; the others stand as they are."""
SAID = 4  # numbers of devices that are listed
_DRAWING = ", ".join(row.title for row in DEVICES.values() if row.watts)
UNKNOWN_WATTS = (
    "What these devices draw is not known. Give their power at work in a custom cluster (Edit "
    f"cluster), or call them by a known type: {_DRAWING}."
)
UNKNOWN_PRICES = (
    "What these devices cost is not known. Give their price per hour in a custom cluster (Edit "
    "cluster)."
)
UNKNOWN_FIGURES = {SampleFigure.ENERGY: UNKNOWN_WATTS, SampleFigure.MONEY: UNKNOWN_PRICES}


def fact_title(name: str) -> str:
    """A fact's name with a capital: "Peak memory"."""
    return name[:1].upper() + name[1:]


def fact_row(fact: PlanFact) -> tuple[str, ...]:
    """Name, the value of each plan, and by how much the second is more or less."""
    values = (_text(fact.name, value) for value in (fact.first, fact.second))
    return fact_title(fact.name), *values, _by(fact)


def moved_text(moved: MovedLayers) -> str:
    """As "features.3 – features.7 (5 layers): stage 0 → stage 1"."""
    names, number = moved.layers, len(moved.layers)
    which = names[0] if number == 1 else f"{names[0]} – {names[-1]} ({count(number, 'layer')})"
    return f"{which}: stage {moved.first} → stage {moved.second}"


STAGE_COLUMNS: Sequence[tuple[str, Callable[[PlanStage], str]]] = (
    ("layers", lambda s: f"{s.first_layer} – {s.last_layer} ({count(s.num_layers)})"),
    ("replicas", lambda s: count(len(s.devices))),
    ("devices", lambda s: devices_text(s.devices)),
    ("compute", lambda s: seconds(s.seconds)),
    ("memory", lambda s: size(s.memory_bytes)),
    ("versions", lambda s: count(s.versions)),
)


def stage_row(pair: StagePair) -> tuple[str, ...]:
    """The stage's number and its columns: one value where both plans have it, else "1 → 2"."""
    cells = []
    for _, write in STAGE_COLUMNS:
        first, second = (write(one) if one else NOTHING for one in (pair.first, pair.second))
        cells.append(first if first == second else f"{first} → {second}")
    return str(pair.stage), *cells


def devices_text(devices: Sequence[int]) -> str:
    """The first few by number: "0, 1", "0, 1, 2, 3 and 11 more"."""
    named = ", ".join(map(str, devices[:SAID]))
    return named if len(devices) <= SAID else f"{named} and {len(devices) - SAID} more"


def _text(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return (planner_name(value) if name == "planner" else value) or NOTHING
    return FORMS[name](value) if name in FORMS else count(int(value))


def _by(fact: PlanFact) -> str:
    first, second = fact.first, fact.second
    if fact.name not in FORMS or isinstance(first, str) or isinstance(second, str):
        return ""
    if fact.name == "bubble":
        return f"{100 * (second - first):+.1f} points".replace("-", "−")
    return change(second, first)


def beside_words(found: FigureBeside) -> str:
    """A figure beside that of the last run: "throughput 1,010/s, 24 % slower than its 1,322/s,
    more than it varies (5.0 %)"."""
    write, (less, more) = _BESIDE.get(found.name, (number, ("lower", "higher")))
    now, before = write(found.now), write(found.before)
    if found.is_open:
        return (
            f"{found.name} {now}, before {before}: it still changes too much from epoch to epoch "
            "to say which is better"
        )
    if not found.is_beyond:
        return f"{found.name} {now} as before ({before}, varies by {_share(found, found.spread)})"
    way = more if found.change > 0 else less
    said = f"{found.name} {now}, {_share(found, abs(found.change))} {way} than its {before}"
    return f"{said}, more than it varies ({_share(found, found.spread)})"


def _share(found: FigureBeside, share: float) -> str:
    """Of a figure; in points where it is a share itself."""
    if found.name == ACCURACY:
        return f"{100 * share * found.before:.1f} points"
    return percent(share, 0 if share >= 0.1 else 1)


_BESIDE = {"throughput": (rate, ("slower", "faster")), ACCURACY: (percent, ("lower", "higher"))}


def pace_words(run: Run, found: Paces) -> str:
    """Which ranks compute longer than their plan says: "rank 1 · stage 1 on device 1 computes 1.41×
    as long as planned, beside the other ranks"; "" where none does."""
    if not isinstance(run.spec, TrainSpec):
        return ""
    names = rank_names(run.spec.plan)
    said = [
        f"{names[pace.rank]} on device {pace.device} computes "
        f"{times(pace.slowdown / found.shared)} as long as planned, beside the other ranks"
        for pace in found.stragglers[:MOST_RANKS]
    ]
    if more := len(found.stragglers) - len(said):
        said.append(f"{count(more, 'further rank')} likewise")
    if found.are_all_slow:
        said.insert(0, f"every rank computes {times(found.shared)} as long as planned or longer")
    if not said:
        return ""
    return (
        f"{'; '.join(said)}, over the last {count(found.minibatches, 'minibatch', 'minibatches')}"
    )


def other_links_words(found: OtherLinks) -> str:
    """That a run had fewer machines than its plan, whose links it did not use: "the plan is for 2
    machines with links of 12.5 MB/s and 20.0 ms between them, and the run is on 1 machine, ..."."""
    link = found.slowest
    late = f" and {seconds(link.latency)}" if link.latency else ""
    return (
        f"the plan is for {count(found.planned, 'machine')} with links of "
        f"{bandwidth(link.bandwidth)}{late} between them, and the run is on "
        f"{count(found.machines, 'machine')}, where messages do not take that long. So it may be "
        "faster than predicted, and says nothing of the prediction for these links. To compare, "
        f"run on {count(found.planned, 'node')}, or plan for {count(found.machines, 'machine')}"
    )


def target_words(target: Target) -> str:
    """As "accuracy 95 %" or "held-out loss 0.3"."""
    said = percent(target.value) if target.metric == ACCURACY else number(target.value)
    return f"{target.metric} {said}"


def aim_words(aim: Aim) -> str:
    """As "ranked by the time to accuracy 95 %"."""
    if aim.target is not None:
        return f"ranked by the time to {target_words(aim.target)}"
    if aim.fewest is not None:
        return f"ranked by {fewest_words(aim.fewest)}"
    return "ranked by simulation"


def fewest_words(fewest: Fewest) -> str:
    """As "energy, of plans with 90 % of the speed or more"."""
    return f"{fewest.figure}, of plans with {percent(fewest.floor, 0)} of the speed or more"


def figure_name(figure: SampleFigure) -> str:
    """As a column or a line calls it."""
    return "energy per sample" if figure is SampleFigure.ENERGY else "money per million samples"


def figure_words(figure: SampleFigure, found: Answer) -> str:
    """An answer's, with its unit; money in the currency of the prices."""
    is_energy = figure is SampleFigure.ENERGY
    return energy_words(found.energy) if is_energy else money_words(found.money)


def energy_words(found: Energy | None) -> str:
    """As "at most 1.24 J"."""
    if found is None:
        return "not known"
    return f"{'at most ' * found.is_most}{joules(found.joules)}"


def money_words(found: float | None) -> str:
    """What a million samples cost, where one costs `found`."""
    return "not known" if found is None else number(found * MILLION)


def time_words(found: TimeToTarget | None) -> str:
    """As "4 min 10 s (1,240 minibatches: 3 runs, 1,100 to 1,400; 1 missed it)"."""
    if found is None:
        return "not known"
    known = found.learnt
    runs = count(len(known.runs), "run")
    spread = f", {known.least:,} to {known.most:,}" if known.least < known.most else ""
    missed = f"; {count(known.missed, 'run')} missed it" if known.missed else ""
    taken = count(round(known.updates), "minibatch", "minibatches")
    return f"{duration(found.seconds)} ({taken}: {runs}{spread}{missed})"
