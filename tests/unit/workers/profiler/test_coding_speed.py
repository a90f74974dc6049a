"""Every codec of the catalog is measured, there and back."""

from dataclasses import replace

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.catalog import CODECS
from workers.profiler.coding_speed import coding_speeds


def test_every_codec_has_its_seconds_in_both_directions() -> None:
    found = {(each.codec, each.flow): each for each in coding_speeds()}
    assert found.keys() == {(name, flow) for name in CODECS for flow in Flow}
    assert len(coding_speeds()) == len(found)
    assert all(each.encoding(1 << 24) > 0 for each in found.values())
    assert all(each.decoding(1 << 24) > 0 for each in found.values())


def test_what_is_coded_alike_is_measured_once() -> None:
    found = {(each.codec, each.flow): each for each in coding_speeds()}
    int8 = found["int8", "gradient"]
    assert replace(found["int8", "activation"], flow="gradient") == int8
    assert replace(found["aq4", "gradient"], codec="int8") == int8
    assert replace(found["fp8", "activation"], flow="gradient") != found["fp8", "gradient"]
