"""How far profiles can be trusted.

    python -m tests.benchmarks.bench_profiles [repetitions, 20 [svg]] [--write]

Per model, in one run: the layers' times together beside the whole step's, two profiles beside
each other, and the memory that the planner predicts beside the measured peak of a step. `svg`
is where to draw how many profiles are within which error.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import workers.zoo
from backend.planning.memory import held_in_flight, held_once
from backend.planning.plan import Stage
from backend.profiles.profile import Profile
from backend.runs.events import Event
from backend.runs.request.spec import ProfileSpec
from tests.benchmarks.evidence import evidence
from workers.profiler.main import profiled
from workers.runtime.process import keep_freed_memory, use_one_thread
from workers.runtime.reports.reporter import Reporter

ZOO = Path(workers.zoo.__file__).parent
HEAD = [
    "model",
    "layers",
    "step, ms",
    "sum / step",
    "again",
    "layers > 2 % differ, median, most",
    "predicted, MB",
    "measured, MB",
    "ratio",
]
SIGNIFICANT = 0.02
"""A layer counts from this share of the step on."""
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "vocab_size": 2000,
    "max_position_embeddings": 256,
}
MODELS = {
    "vgg_digits": (64, {}),
    "resnet_digits": (32, {}),
    "alexnet": (4, {"width": 48, "hidden": 1024}),
    "resnet50": (4, {"width": 32, "image": 112}),
    "gnmt": (8, {"width": 256, "tokens": 2000, "length": 20}),
    "awd_lm": (8, {"tokens": 2000, "width": 400, "words": 200}),
    "gpt2": (4, {"tokens": 2000, "width": 256, "depth": 4, "heads": 4}),
    "bert": (4, {"tokens": 2000, "width": 256, "depth": 4, "heads": 4}),
    "vit": (4, {"width": 256, "depth": 4, "heads": 4, "image": 112}),
}
CONFIGS = {
    "llama": {"architectures": ["LlamaForCausalLM"], "num_key_value_heads": 2} | SIZES,
    "t5": {
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": 256,
        "d_ff": 1024,
        "d_kv": 64,
        "num_layers": 3,
        "num_heads": 4,
        "vocab_size": 2000,
    },
}


class Quiet(Reporter):
    """Says nothing."""

    def __call__(self, event: Event) -> None: ...

    def log(self, text: str) -> None: ...


def cases(folder: Path, repetitions: int) -> Iterator[tuple[str, Path, ProfileSpec]]:
    """(name, file, what to measure)."""
    for name, (batch, parameters) in MODELS.items():
        yield name, ZOO / f"{name}.py", ProfileSpec(1, batch, repetitions, parameters)
    for name, fields in CONFIGS.items():
        file = folder / name / "config.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"model_type": name} | fields))
        yield name, file, ProfileSpec(1, 4, repetitions, {"length": 64}, "fine")


def step(profile: Profile) -> float:
    return profile.whole_forward + profile.whole_backward + profile.whole_update


def total(profile: Profile) -> float:
    return sum(layer.compute_and_update for layer in profile.layers)


def differences(one: Profile, other: Profile) -> list[float]:
    """Relative differences of the significant layers."""
    pairs = [
        (a.compute + a.update, b.compute + b.update)
        for a, b in zip(one.layers, other.layers, strict=True)
    ]
    return [abs(a - b) / min(a, b) for a, b in pairs if a > SIGNIFICANT * step(one)]


def predicted(profile: Profile) -> float:
    """By the planner's model: one stage, one version, one microbatch, momentum."""
    whole = Stage(0, len(profile.layers), (0,))
    return (held_once(profile, whole, 1, "momentum") + held_in_flight(profile, whole, 1)).total


def curve(away: list[float], most: float = 0.2) -> str:
    """The share of profiles (up) whose sum of layers is within so much of the step (right)."""
    wide, high, left = 420, 200, 40
    points = []
    for number, error in enumerate(sorted(away), start=1):
        x = left + wide * min(error / most, 1)
        points += [f"{x:.1f},{high - high * (number - 1) / len(away):.1f}"]
        points += [f"{x:.1f},{high - high * number / len(away):.1f}"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -15 {left + wide + 20} {high + 50}" '
        'font-family="sans-serif" font-size="11" fill="#808A98" stroke="none">'
    ]
    for step in range(5):
        x, y = left + wide * step / 4, high - high * step / 4
        lines.append(f'<path d="M{x} 0V{high}M{left} {y}H{left + wide}" stroke="#808A98" ')
        lines.append(f'stroke-opacity=".25"/><text x="{x - 8}" y="{high + 15}">')
        lines.append(f'{most * step / 4:.0%}</text><text x="5" y="{y + 4}">{step / 4:.0%}</text>')
    lines.append(f'<text x="{left}" y="{high + 31}">sum of layers away from the step</text>')
    lines.append(f'<polyline points="{left},{high} {" ".join(points)} {left + wide},0" ')
    lines.append('fill="none" stroke="#0072B2" stroke-width="2"/></svg>')
    return "".join(lines) + "\n"


def main() -> None:
    """Print a row per model and the medians."""
    use_one_thread()
    keep_freed_memory()
    page = evidence("profiles", "bench_profiles")
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{repetitions} repetitions; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    sums: list[float] = []
    apart: list[float] = []
    ratios: list[float] = []

    def rows(folder: str) -> Iterator[list[str]]:
        for name, file, spec in cases(Path(folder), repetitions):
            one, two = (profiled(name, file, spec, Quiet(0)) for _ in range(2))
            assert one.peak_bytes is not None
            both = [total(each) / step(each) for each in (one, two)]
            found, ratio = differences(one, two), predicted(one) / one.peak_bytes
            sums.extend(both)
            apart.extend(found)
            ratios.append(ratio)
            yield [
                name,
                str(len(one.layers)),
                f"{step(one) * 1e3:.1f}",
                *(f"{each:.3f}" for each in both),
                f"{median(found):.1%}, {max(found):.1%}",
                f"{predicted(one) / 1e6:.1f}",
                f"{one.peak_bytes / 1e6:.1f}",
                f"{ratio:.3f}",
            ]

    with tempfile.TemporaryDirectory() as folder:
        page.table("profiles", HEAD, rows(folder))
    away = sorted(abs(each - 1) for each in sums)
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(curve(away))
    off = sorted(abs(each - 1) for each in ratios)
    within = sum(each <= 0.1 for each in apart) / len(apart)
    print(f"\nsum of layers away from the step: median {median(away):.1%}, most {away[-1]:.1%}")
    print(f"significant layers that agree within 10 %: {within:.1%} of {len(apart)}")
    print(f"predicted memory away from the measured: median {median(off):.1%}, most {off[-1]:.1%}")


if __name__ == "__main__":
    main()
