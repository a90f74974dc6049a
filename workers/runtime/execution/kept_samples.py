"""Whether there is room for what codecs of messages keep of every training sample."""

from collections.abc import Iterable

from backend.errors import InvalidInput
from backend.planning.message_codecs import WITHOUT, sample_keeper
from backend.planning.plan import Plan
from backend.units import bytes_text
from workers.runtime.process import free
from workers.runtime.rank import Rank
from workers.runtime.samples.epoch import Form


def kept_samples(rank: Rank, plan: Plan, num_samples: int, forms: Iterable[Form]) -> str:
    """What all ranks together keep of so many samples, in a sentence for the log; "" where they
    keep none. Of samples of different lengths, in microbatches of these `forms`, all count as the
    longest. Every rank calls it. Raises `InvalidInput` where a rank's device, or on CPUs its host,
    has no room for that."""
    if not (name := sample_keeper(plan)):
        return ""
    forms, messages = list(forms), rank.messages
    cuts = {c for stage in rank.stages.modules for c in (stage - 1, stage)}
    crossed = list(filter(plan.partition.crosses, cuts))
    most = sum(max(messages.kept_per_sample(cut, form) for form in forms) for cut in crossed)
    own, world = num_samples * most, rank.world
    hosts = world.total([float(own * (host == world.host)) for host in range(world.hosts)])
    needed, room = own if world.on_gpu else hosts[world.host], free(world.device)
    if needed > room:
        raise InvalidInput(
            f"codec {name!r} keeps activations of each of {num_samples:,} training samples: "
            f"{bytes_text(needed)} on {'this device' if world.on_gpu else 'this host'}, where "
            f"{bytes_text(room)} are free",
            f"Train on fewer samples, or {WITHOUT}",
        )
    return (
        f"Codec {name!r} keeps activations of each of {num_samples:,} training samples: in all up "
        f"to {bytes_text(sum(hosts))}, of which every checkpoint has one end's half. Samples go "
        "plain the first time."
    )
