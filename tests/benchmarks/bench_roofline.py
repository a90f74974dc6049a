"""How far calculated profiles are off:

    python -m tests.benchmarks.bench_roofline [--write] [published] [cores] [between]

1. The roofline of a V100 beside the published profiles, which were measured on such a GPU: all
   layers together, and what a plan made from the roofline costs on the measured times beside
   the plan made from those (needs ../shared/profiles).
2. Profiles by the measured record of a core of this machine (`stageflow clusters measure`), beside
   those measured on it.
3. Profiles of one core of this machine carried to two cores and back, beside those measured
   there: two devices with unlike ratios of operations to memory. Needs two cores.

Without names all three. `--write` is of the first two.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, median

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from published import FOLDER, load

from backend.cluster.cluster import Device
from backend.cluster.presets import cluster_a
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.prediction.imagined import on_own
from backend.profiles.devices import Peak, peak
from backend.profiles.profile import Profile
from backend.profiles.roofline import Work, roofline
from backend.profiles.transfer import carried
from backend.runs.request.spec import ProfileSpec
from tests.benchmarks.bench_profiles import MODELS, ZOO, Quiet
from tests.benchmarks.evidence import Evidence, evidence
from workers.profiler.device_peaks import device_peaks
from workers.profiler.main import profiled
from workers.runtime.process import keep_freed_memory, use_one_thread

PUBLISHED = "alexnet", "vgg16", "resnet50", "densenet121", "inception_v3"
CARRIED = "vgg_digits", "alexnet", "resnet50", "gnmt", "gpt2", "vit"
OF_CORES = "vgg_digits", "gpt2"
HEAD_OF_CORES = [
    "model",
    "measured, ms",
    "by the record, ms",
    "measured / by the record",
    "layers over 2 %, median",
    "from, to",
]
HEAD = [
    "profile",
    "measured, ms",
    "roofline, ms",
    "measured / roofline",
    "products",
    "the rest",
    "plan",
    "from the roofline",
    "costs",
]


def main() -> None:
    use_one_thread()
    keep_freed_memory()
    page = evidence("roofline", "bench_roofline")
    asked = sys.argv[1:] or ["published", "cores", "between"]
    if "published" in asked and FOLDER.is_dir():
        beside_published(page)
    if "cores" in asked:
        page.table("cores", HEAD_OF_CORES, by_record())
    if "between" in asked:
        between_devices()


def by_record() -> Iterator[list[str]]:
    record = device_peaks()
    device = Device("core", record=record)
    for model, measured in profiles(1, OF_CORES)[1].items():
        guess = on_own(measured, device, "", "")
        pairs = [(a.compute, b.compute) for a, b in zip(measured.layers, guess.layers, strict=True)]
        large = [a / b for a, b in pairs if a > 0.02 * total(measured)]
        yield [
            model,
            *(f"{total(one) * 1e3:.1f}" for one in (measured, guess)),
            f"{total(measured) / total(guess):.2f}",
            f"{median(large):.2f}",
            f"{min(large):.2f} to {max(large):.2f}",
        ]
    rates = record.flops
    print(f"\n{rates}, {record.bandwidth:.3g} bytes/s, {record.launch:.3g} s a layer\n")


def beside_published(page: Evidence) -> None:
    ratios: list[float] = []
    costs: list[float] = []

    def rows() -> Iterator[list[str]]:
        for model in PUBLISHED:
            measured = load(model)
            guess = as_roofline(measured)
            products = [layer.flops is not None for layer in measured.layers]
            others = [not one for one in products]
            best, cut = optimum(measured, cluster_a(4)), optimum(guess, cluster_a(4))
            ratios.append(total(measured) / total(guess))
            costs.append(bottleneck(measured, cluster_a(4), cut.partition) / best.seconds)
            yield [
                model,
                *(f"{total(one) * 1e3:.1f}" for one in (measured, guess)),
                f"{ratios[-1]:.2f}",
                *(f"{share(measured, guess, chosen):.2f}" for chosen in (products, others)),
                *(one.partition.label for one in (best, cut)),
                f"{costs[-1]:.3f}",
            ]

    page.table("roofline", HEAD, rows())
    print(f"\nmeasured / roofline: {geometric_mean(ratios):.2f} in the geometric mean, ", end="")
    print(f"{min(ratios):.2f} to {max(ratios):.2f}; plans cost up to {max(costs):.3f}\n")


def as_roofline(measured: Profile) -> Profile:
    """The same layers, with the seconds of a V100's roofline; what took no time there (a view,
    an addition in place) takes none here."""
    read = [0.0] * len(measured.layers)
    for tensor in measured.graph.tensors:
        for reader in tensor.readers:
            read[reader] += tensor.bytes
    work = [
        Work(
            layer.name,
            layer.kind,
            layer.flops or 0.0,
            moved + layer.output_bytes + layer.parameter_bytes if layer.compute else 0.0,
            layer.output_bytes,
            layer.parameter_bytes,
        )
        for layer, moved in zip(measured.layers, read, strict=True)
    ]
    guess = roofline(measured.name, work, measured.graph.edges, 1, peak("v100"))
    return replace(measured, graph=replace(measured.graph, layers=guess.layers))


def total(profile: Profile) -> float:
    return sum(layer.compute for layer in profile.layers)


def share(measured: Profile, guess: Profile, chosen: list[bool]) -> float:
    """Measured over calculated seconds of the chosen layers."""
    pairs = zip(measured.layers, guess.layers, chosen, strict=True)
    kept = [(one.compute, other.compute) for one, other, of in pairs if of]
    return sum(one for one, _ in kept) / sum(other for _, other in kept)


def between_devices() -> None:
    print("| model | from, to | measured there, ms | carried, ms | off | layers over 2 %, median |")
    print("|---|---|---|---|---|---|")
    found = {cores: profiles(cores) for cores in (1, 2)}
    off, layers = [], []
    for model in CARRIED:
        for source in (1, 2):
            (here, one), (there, other) = found[source], found[3 - source]
            guess = carried(one[model], here, there)
            error = total(guess) / total(other[model]) - 1
            each = [
                abs(a.compute / b.compute - 1)
                for a, b in zip(guess.layers, other[model].layers, strict=True)
                if b.compute > 0.02 * total(other[model])
            ]
            print(
                f"| {model} | {here.name}, {there.name} | {total(other[model]) * 1e3:.1f} "
                f"| {total(guess) * 1e3:.1f} | {error:+.0%} | {median(each):.0%} |"
            )
            off.append(abs(error))
            layers += each
    for most, _ in found.values():
        print(
            f"\n{most.name}: {most.flops / 1e9:.0f} GFLOP/s, {most.bandwidth / 1e9:.1f} GB/s",
            end="",
        )
    print(f"\nwhole off: median {median(off):.0%}, most {max(off):.0%}; ", end="")
    print(f"layers: median {median(layers):.0%}, most {max(layers):.0%}")


def profiles(cores: int, models: Sequence[str] = CARRIED) -> tuple[Peak, dict[str, Profile]]:
    """The peaks of so many cores, and what the models take there."""
    torch.set_num_threads(cores)
    found = {}
    for model in models:
        batch, parameters = MODELS[model]
        spec = ProfileSpec(1, batch, 10, parameters)
        found[model] = profiled(model, ZOO / f"{model}.py", spec, Quiet(0))
    record = device_peaks()
    assert record.flops.float32
    assert record.bandwidth
    return Peak(f"{cores} of the cores", record.flops.float32, record.bandwidth), found


if __name__ == "__main__":
    main()
