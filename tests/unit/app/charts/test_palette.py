"""A colour means one thing within a chart."""

from app.charts import palette

SAME = {"receive": "send", "averaging": "all-reduce", "data": "loading data"}
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
