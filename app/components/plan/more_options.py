"""Memory, recomputation, chunks, parallel pipelines and the like: one control, closed at first."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.components.plan.sites_field import sites_field
from app.components.plan.sums_field import sums_field
from app.components.plan.wanted import Wanted, options_text
from app.components.shell.number_field import amount_field, whole_field
from app.components.shell.pick import pick, pick_several
from app.differences import figure_name
from app.session import state
from app.session.state import Param, bound
from backend.comparison.aims import Fewest, SampleFigure
from backend.comparison.to_target import Target
from backend.pipeline.codecs.catalog import AUTO, CODECS, PLAIN
from backend.pipeline.shape_checks import MOST_RUN_AHEAD
from backend.planning.optimizers import OPTIMIZERS
from backend.planning.savings import MemorySaving
from backend.prediction.imagined import OWN
from backend.prediction.question import MOST_CHUNKS, MOST_PIPELINES, MOST_UPDATE_TIMES
from backend.prediction.run_ahead import MOST_TRIED
from backend.profiles.devices import DEVICES, Precision
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.profiles import StoredProfile

GIB, MS = 2**30, 1e-3
SAVINGS = {
    MemorySaving.AUTO: "where memory requires it",
    MemorySaving.NEVER: "never",
    MemorySaving.ALWAYS: "always",
}
RANKED_BY = {
    "": "samples per second",
    ACCURACY: "time to accuracy",
    HELD_OUT_LOSS: "time to held-out loss",
    **{figure.value: figure_name(figure) for figure in SampleFigure},
}
FLOOR = 0.9
FLOOR_HELP = "Of the most samples per second: slower plans come last. Empty: 90 %."
CODEC_WORDS = {PLAIN: "none: plain numbers", AUTO: "auto: where it is faster"}


def more_options(stored: StoredProfile, profiles: Sequence[StoredProfile]) -> dict[str, Any]:
    """The fields of `Wanted` that are asked here. `profiles`: those that there are."""
    with st.popover("More options", icon=":material/tune:", key="more-options"):
        left, right = st.columns(2, gap="medium")
        with left:
            found = _memory() | _further(stored, profiles) | _aim()
        with right:
            found |= _updates() | _pipelines() | _device()
    return found


def options_note(wanted: Wanted) -> None:
    """How many of them are set, and to what."""
    if said := options_text(wanted):
        st.caption(said)


def _memory() -> dict[str, Any]:
    memory = amount_field(
        "Memory per device, GiB",
        Param.MEMORY,
        GIB,
        "Most that a plan may use of each device, in GiB. Empty: what the cluster says.",
    )
    recompute = pick(
        "Recomputation",
        list(SAVINGS),
        Param.RECOMPUTE,
        str,
        lambda choice: SAVINGS[choice],
        help="Whether forwards keep their inputs alone, and run once more before the backward: "
        "less memory, more compute.",
    )
    sharded = pick(
        "Sharded state",
        list(SAVINGS),
        Param.SHARD_STATE,
        str,
        lambda choice: SAVINGS[choice],
        help="Whether each replica of a stage keeps a part of its optimizer's state and masters, "
        "updates that part of the weights and sends it to the others: less memory, more sent.",
    )
    optimizer = pick(
        "Optimizer",
        tuple(OPTIMIZERS),
        Param.OPTIMIZER,
        str,
        lambda name: OPTIMIZERS[name].title,
        help="Its state counts as memory: none with sgd, one copy of the weights with momentum and "
        "lion, two with adam and adamw.",
    )
    averaged = st.toggle(
        "Averaged weights (EMA)",
        help="A moving average of the weights is kept beside, which a run evaluates and saves: 4 "
        "bytes more per weight.",
        **bound(Param.AVERAGED),
    )
    kept = pick(
        "Precision of state",
        tuple(STATE_PRECISIONS),
        Param.STATE_PRECISION,
        str,
        lambda name: STATE_PRECISIONS[name].title,
        help="In which weights, their versions and gradients and the optimizer's state are kept. "
        "Masters are the float32 weights that updates are made on.",
    )
    return {
        "memory": memory,
        "recompute": recompute,
        "shard_state": sharded,
        "optimizer": optimizer,
        "averaged": averaged,
        "state_precision": kept,
    }


def _updates() -> dict[str, Any]:
    times = whole_field(
        "Largest update, times the usual",
        Param.UPDATE_TIMES,
        1,
        MOST_UPDATE_TIMES,
        1,
        "How many times the samples of an update every schedule with batches may take. Large "
        "updates are faster, and learn otherwise. 1: no more than the microbatches per update.",
        width="stretch",
    )
    run_ahead = pick(
        "Run ahead",
        _depths(),
        Param.RUN_AHEAD,
        str,
        lambda number: f"{number} per hop" if number else "as far as it is faster",
        help="Microbatches in flight beyond 1F1B's at each hop, under schedules that never drain: "
        "slow links are hidden, for more activations, and under PipeDream older weights.",
    )
    ahead = int(run_ahead) if run_ahead else None
    coded = pick(
        "Codec of messages",
        [PLAIN, AUTO, *CODECS],
        Param.CODEC,
        str,
        lambda name: CODECS[name].title if name in CODECS else CODEC_WORDS[name],
        help="How activations and their gradients are made smaller between stages. Slow links send "
        "fewer bytes, and what is read again is rounded. Auto: at each cut where coding, sending "
        "and reading take less than sending plain numbers, by the profile's speeds.\n\n"
        + "\n".join(f"- **{member.title}**: {member.note}" for member in CODECS.values()),
    )
    sites, sums = sites_field(), sums_field()
    split = st.toggle(
        "Split layers by channels",
        help="Replicas of a stage hold slices of those linear and embedding layers that are faster "
        "so, instead of copies, under schedules that flush with whole backwards (GPipe, 1F1B with "
        "flush): their gradients are not summed, activations are exchanged.",
        **bound(Param.SPLIT_CHANNELS),
    )
    return {
        "sites": sites,
        "codec": coded,
        "codec_of_sums": sums,
        "split_channels": split,
        "run_ahead": ahead,
        "update_times": times,
        "search_on": state.text(Param.SEARCH_ON) == "1",
    }


def _depths() -> list[str]:
    """Those that a search tries; the one of a kept plan, or a link, may be further."""
    named = state.number(Param.RUN_AHEAD) or 0
    further = [named] if MOST_TRIED < named <= MOST_RUN_AHEAD else []
    return ["", *map(str, (*range(MOST_TRIED + 1), *further))]


def _aim() -> dict[str, Any]:
    """What plans are ranked by: samples/s, the time to a target, energy or money."""
    metric = pick(
        "Rank by",
        list(RANKED_BY),
        Param.RANK_BY,
        str,
        RANKED_BY.__getitem__,
        help="The time to a target is the seconds of a minibatch, as simulated, times the "
        "minibatches that runs of this model by the same update rule took to it. Energy is "
        "what the devices draw, where the cluster says it or their type is known, money what "
        "they cost, where the cluster says it.",
    )
    value = fewest = None
    if metric in list(SampleFigure):
        floor = amount_field("Of the speed, %", Param.FLOOR, 0.01, FLOOR_HELP)
        floor = FLOOR if floor is None else min(floor, 1.0)
        fewest = Fewest(SampleFigure(metric), floor)
    elif metric == ACCURACY:
        value = amount_field("Accuracy, %", Param.TARGET, 0.01, "Held out, up to 100 %.")
        value = None if value is None else min(value, 1.0)
    elif metric:
        value = amount_field("Loss", Param.TARGET_LOSS, 1.0, "Held out; this or less.")
    return {"target": Target(metric, value) if value else None, "fewest": fewest}


def _pipelines() -> dict[str, Any]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chunks = whole_field(
            "Chunks per device",
            Param.CHUNKS,
            2,
            MOST_CHUNKS,
            2,
            "Stages on each device, under a schedule that interleaves.",
            width="stretch",
        )
        pipelines = whole_field(
            "Parallel pipelines",
            Param.PIPELINES,
            1,
            MOST_PIPELINES,
            3,
            "Most whole pipelines that AvgPipe puts on the same devices.",
            width="stretch",
        )
    help = (
        "Milliseconds per microbatch of one parallel pipeline alone, and of each of two on the "
        "same devices, as a run measured them: what devices gain by computing for two at once."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        alone = amount_field("One alone, ms", Param.TOOK_ALONE, MS, help)
        together = amount_field("Each of two, ms", Param.TOOK_TOGETHER, MS, help)
    took = (alone, together) if alone and together else None
    return {"chunks": chunks, "pipelines": pipelines, "took": took}


def _further(stored: StoredProfile, profiles: Sequence[StoredProfile]) -> dict[str, Any]:
    """Profiles of the same model at other microbatch sizes; drawn where there are any."""
    names = [layer.name for layer in stored.profile.layers]
    by_id = {
        kept.id: kept
        for kept in profiles
        if kept.definition_id == stored.definition_id
        and kept.profile.microbatch != stored.profile.microbatch
        and [layer.name for layer in kept.profile.layers] == names
    }
    named = state.text(Param.FURTHER).split(",")
    chosen = pick_several(
        "Profiles at other microbatch sizes",
        list(by_id),
        [number for number in by_id if str(number) in named],
        Param.FURTHER,
        lambda number: f"{number} · microbatch {by_id[number].profile.microbatch}",
        placeholder="choose" if by_id else "none of this model",
        disabled=not by_id,
        help="Measured times at these sizes; at other sizes times are in proportion.",
    )
    return {"further": tuple(by_id[number] for number in chosen)}


def _device() -> dict[str, Any]:
    types = ["", *DEVICES]
    others = {"": "the device that was profiled", OWN: "the cluster's device, by its figures"}
    device = pick(
        "Estimate times for",
        [*others, *DEVICES],
        Param.DEVICE,
        str,
        lambda name: others.get(name) or DEVICES[name].title,
        help="Estimates each layer's time on another type of device by the peaks of both. Such a "
        "plan is for looking at: profile the model there before you save or launch it.",
    )
    if not device:
        return {}
    measured_on = pick(
        "Measured on",
        types,
        Param.MEASURED_ON,
        str,
        lambda name: DEVICES[name].title if name else "what the profile says",
        help="The device that the profile's times are of.",
    )
    precision = pick(
        "Precision",
        ["", *Precision],
        Param.DEVICE_PRECISION,
        str,
        lambda name: name or "the profile's",
        help="In which both devices compute.",
    )
    return {"device": device, "measured_on": measured_on, "precision": str(precision)}
