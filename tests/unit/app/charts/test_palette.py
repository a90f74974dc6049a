"""A colour means one thing within a page."""

from app.charts import palette, shares
from backend.pipeline.bubbles import Idle

SAME = {"receive": "send", "averaging": "all-reduce"}
"""Words of one idea."""


def test_every_action_of_a_timeline_has_its_colour() -> None:
    own = {word: colour for word, colour in palette.COLOURS.items() if word not in SAME}
    assert len(set(own.values())) == len(own)
    for word, other in SAME.items():
        assert palette.COLOURS[word] == palette.COLOURS[other]


def test_curves_and_pairs_have_none_of_the_colours_beside_them() -> None:
    """Curves stand below the timeline, pairs of profiles below forward and backward."""
    shown = {*palette.COLOURS.values(), palette.LIMIT}
    assert palette.CURVE not in shown
    beside = {palette.FORWARD, palette.BACKWARD, palette.BACKWARD_INPUT, palette.BACKWARD_WEIGHT}
    assert not {*palette.PAIR} & {*beside, palette.OPTIMIZER, palette.NEUTRAL}


def test_every_part_of_memory_and_every_stage_has_its_colour() -> None:
    assert len(set(palette.MEMORY.values())) == len(palette.MEMORY)
    assert len(set(palette.STAGES)) == len(palette.STAGES)


def test_what_stands_beside_a_timeline_shares_a_colour_with_an_action_only_where_it_is_its() -> (
    None
):
    """Memory and stages on Plan, runs and their curves on Compare, idle time on both."""
    actions = set(palette.COLOURS.values()) - {palette.NEUTRAL, palette.IDLE}
    assert palette.LIMIT not in {*actions, *palette.SERIES}
    assert not actions & {*palette.STAGES, *palette.SERIES}
    assert len(set(palette.SERIES)) == len(palette.SERIES)
    own = {"optimizer": "optimizer", "messages": "send"}
    for word, colour in palette.MEMORY.items():
        assert (colour in actions) == (word in own), word
        assert word not in own or colour == palette.COLOURS[own[word]]
    of_actions = {cause for cause, colour in shares.IDLE.items() if colour in actions}
    assert of_actions == {Idle.COMMUNICATION, Idle.SYNCHRONISATION}
    looks = {(colour, shares.HATCHED.get(cause, "")) for cause, colour in shares.IDLE.items()}
    assert len(looks) == len(shares.IDLE)
