"""A colour means one thing within a chart."""

from app.charts import palette

SAME = {"receive": "send", "averaging": "all-reduce", "data": "loading data"}
"""Words of one idea."""


def test_every_action_of_a_timeline_has_its_colour() -> None:
    own = {word: colour for word, colour in palette.COLOURS.items() if word not in SAME}
    assert len(set(own.values())) == len(own)
    for word, other in SAME.items():
        assert palette.COLOURS[word] == palette.COLOURS[other]


def test_every_part_of_memory_and_every_stage_has_its_colour() -> None:
    assert len(set(palette.MEMORY.values())) == len(palette.MEMORY)
    assert len(set(palette.STAGES)) == len(palette.STAGES)
