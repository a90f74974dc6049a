"""The codec of the gradients that the replicas of a stage sum, as people write it, and which plans
may have one."""

from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import AUTO, CODECS
from backend.planning.rounded_sums import RoundedSums
from backend.planning.rule_text import with_settings
from backend.planning.thresholds import NAME, SETTINGS, TITLE, Thresholds

CodecOfSums = Thresholds | RoundedSums
ROUNDED = {each.words: each for each in (RoundedSums("bf16"), RoundedSums("fp16"))}


def read_codec_of_sums(text: str) -> CodecOfSums | None:
    """The codec of sums of a text such as "dct:keep=0.01", "dct" or "bf16"; None of an empty one,
    and of "auto", by which planners choose. Raises `InvalidInput`."""
    name, _, rest = (part.strip() for part in text.partition(":"))
    if not name or name == AUTO:
        return None
    if name in ROUNDED:
        title = f"The codec of sums {CODECS[name].title}"
        return with_settings(ROUNDED[name], rest, (), title, name)
    if name != NAME:
        known = ", ".join((*ROUNDED, Thresholds().words))
        raise InvalidInput(f"no codec of sums {name!r}", f"Try one of: {known}.")
    found = with_settings(Thresholds(), rest, SETTINGS, TITLE, Thresholds().words)
    found.check()
    return found


def check_codec_of_sums(chosen: CodecOfSums | None, most_replicas: int, sharded: bool) -> None:
    """Raise `InvalidInput` where a plan whose stages have at most so many replicas, with `sharded`
    state or without, cannot have this codec of sums."""
    if chosen is None:
        return
    chosen.check()
    if most_replicas == 1:
        raise InvalidInput(
            "no stage has several replicas, so there are no sums of gradients to be coded",
            "Leave the codec of sums out, or use a plan that replicates a stage.",
        )
    if sharded:
        raise InvalidInput(
            "a codec of sums needs every replica to have all weights' updates, and with sharded "
            "state each makes a part",
            "Leave the codec of sums out, or do not shard the state.",
        )
