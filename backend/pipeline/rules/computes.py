"""The rules of computing: everything once, after what it needs, with the right weights."""

from collections.abc import Iterator

import numpy as np

from backend.pipeline.kinds import Bools, Ints, Is, Kind
from backend.pipeline.rules.faults import Broken, Fault, Rule, missing
from backend.pipeline.rules.places import NOWHERE, Places


def once(at: Places) -> Iterator[Broken | Fault]:
    """ONCE: every forward, every half of a backward, and the recomputation where there is one."""
    kind, key = at.order.kind, at.key
    whole, half = kind == Kind.BACKWARD, kind == Kind.BACKWARD_INPUT
    again = kind == Kind.RECOMPUTE
    for mask, first, what in (
        (kind == Kind.FORWARD, at.forward, "runs a second time"),
        (again, at.again, "runs a second time"),
        (whole | half, at.inputs, "runs a second time"),
        (Is.LEARNING[kind], at.weights, "adds its gradients a second time"),
    ):
        yield _broken(at, Rule.ONCE, mask, first[key] != at.computes, what)
    for_nothing = _idle(at) | (not at.shape.recompute)
    yield _broken(at, Rule.ONCE, again, for_nothing, "computes again what the forward has kept")
    yield from _missing(at)


def _idle(at: Places) -> Bools:
    """Per compute whether the backwards of its stage do nothing."""
    return np.asarray(at.rule.idle_backward(at.shape)[at.order.stage])


def _missing(at: Places) -> Iterator[Fault]:
    shape = at.shape
    for key in np.flatnonzero(at.forward == NOWHERE).tolist():
        stage, microbatch = divmod(key, shape.num_microbatches)
        rank = shape.rank_of(stage, microbatch)
        yield missing(rank, Rule.ONCE, f"never runs {stage}F{microbatch}")
    for key in np.flatnonzero(at.weights == NOWHERE).tolist() if at.rule.trains else ():
        stage, microbatch = divmod(key, shape.num_microbatches)
        rank = shape.rank_of(stage, microbatch)
        what = f"never finishes the backward {stage}B{microbatch}"
        yield missing(rank, Rule.ONCE, what)


def in_order(at: Places) -> Iterator[Broken]:
    """ORDER: a backward after its forward, its weights' half after its inputs', a recomputation
    between."""
    kind, key, row = at.order.kind, at.key, at.computes
    again = kind == Kind.RECOMPUTE
    back = Is.READING[kind] & (kind != Kind.FORWARD) & ~again

    def early(first: Ints) -> Bools:
        found = first[key]
        return np.asarray((found == NOWHERE) | (found > row))

    yield _broken(at, Rule.ORDER, back | again, early(at.forward), "comes before its forward")
    yield _broken(at, Rule.ORDER, again, ~early(at.inputs), "comes after its backward")
    if at.shape.recompute:
        what = "comes before its forward is computed again"
        asked = back & ~_idle(at)
        yield _broken(at, Rule.ORDER, asked, early(at.again), what)
    what = "comes before the input's half of the backward"
    yield _broken(at, Rule.ORDER, kind == Kind.BACKWARD_WEIGHT, early(at.inputs), what)


def versions(at: Places) -> Iterator[Broken]:
    """VERSION: none is read before it is made, and a backward's is its forward's."""
    kind, key, version, made = at.order.kind, at.key, at.version, at.made
    step, forward = kind == Kind.STEP, kind == Kind.FORWARD
    wanted = made + 1
    yield Broken(
        Rule.VERSION,
        at.computes[step & (version != wanted)],
        lambda row: f"should make version {at_row(at, wanted, row)}",
    )
    begun = at.forward[key]
    follows = ~step & ~forward & (begun != NOWHERE) & (begun < at.computes)
    read = at.program.rows.version[begun]
    differs = follows & (read != version) if at.rule.consistent else np.zeros_like(follows)
    yield Broken(
        Rule.VERSION,
        at.computes[differs],
        lambda row: f"differs from its forward, which read {at_row(at, read, row)}",
    )
    yield Broken(
        Rule.VERSION,
        at.computes[(forward | follows) & ~differs & (version > made)],
        lambda row: f"reads a version, but only {at_row(at, made, row)} are made",
    )


def at_row(at: Places, values: Ints, row: int) -> int:
    """The value of a row in a column of the computes."""
    return int(values[np.searchsorted(at.computes, row)])


def _broken(at: Places, rule: Rule, mask: Bools, wrong: Bools, what: str) -> Broken:
    return Broken(rule, at.computes[mask & wrong], what)
