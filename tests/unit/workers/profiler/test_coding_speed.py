"""Every codec of the catalog is measured, there and back."""

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.catalog import CODECS
from workers.profiler.coding_speed import coding_speeds


def test_every_codec_has_its_seconds_in_both_directions() -> None:
    found = {(each.codec, each.flow): each for each in coding_speeds()}
    assert found.keys() == {(name, flow) for name in CODECS for flow in Flow}
    assert len(coding_speeds()) == len(found)
    assert all(each.encoding(1 << 24) > 0 for each in found.values())
    assert all(each.decoding(1 << 24) > 0 for each in found.values())
