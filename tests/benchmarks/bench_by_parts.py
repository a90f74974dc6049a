"""A Llama of 6.7 billion parameters profiled by parts in 8 GB, and planned over 8 devices of 24 GB.

    python -m tests.benchmarks.bench_by_parts [--depth 32] [--repetitions 3] [--write]

The process may hold 8 GB of data, so that the model (27 GB in float32) is made, checked and timed
layer by layer. Plans count with the times of this machine's cores; with adapters the model is
described without weights, with an A10's times by its peaks.
"""

import argparse
import json
import re
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.savings import MemorySaving
from backend.prediction.answer import rank
from backend.prediction.question import Question
from backend.profiles.profile import Profile
from backend.runs.request.spec import ProfileSpec
from tests.benchmarks.evidence import evidence
from workers.profiler.described import described
from workers.profiler.main import profiled
from workers.runtime.process import keep_freed_memory, use_one_thread
from workers.runtime.reports.reporter import Reporter

ROOM, LENGTH, GIB = 8 * 10**9, 128, 2**30
LORA = Path(__file__).parent / "models" / "lora_llama.py"
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
SERVERS = Cluster((Level(4, 12e9), Level(2, 1.25e9)), Device("A10", 24e9))
ASKED = (
    ("pipedream-2bw", "2bw", MemorySaving.NEVER),
    ("pipedream", "1f1b-flush", MemorySaving.NEVER),
    ("pipedream", "1f1b-flush", MemorySaving.ALWAYS),
)
PROFILED = ["parameters", "layers", "measured by", "seconds", "peak of the process, GiB"]
PLANNED = ["model", "planner", "schedule", "recomputes", "stages", "memory per stage, GiB"]


def main() -> None:
    page = evidence("prediction", "bench_by_parts")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    use_one_thread()
    keep_freed_memory()
    adapted = _adapted(given.depth)
    started = time.monotonic()
    whole = _by_parts(given.depth, given.repetitions)
    seconds = time.monotonic() - started
    page.table("by-parts", PROFILED, [_profiled(whole, seconds)])
    page.table("by-parts plans", PLANNED, [*_planned("all weights", whole)])
    page.table("by-parts adapters", PLANNED, [*_planned("adapters", adapted)])


def _by_parts(depth: int, repetitions: int) -> Profile:
    """Within the room, which is taken before anything of the model is made."""
    resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM))
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(LLAMA | {"num_hidden_layers": depth}))
        spec = ProfileSpec(1, 1, repetitions, parameters={"length": LENGTH})
        return profiled("llama", config, spec, Reporter(0))


def _adapted(depth: int) -> Profile:
    spec = ProfileSpec(1, 1, parameters={"depth": depth}, granularity="blocks", peak="a10")
    return described("adapters", LORA, spec)


def _profiled(found: Profile, seconds: float) -> list[str]:
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    held = int(peak[1]) * 1024 / GIB if peak else 0.0
    how = "parts" if found.by_parts else "the whole"
    parameters = f"{found.parameter_bytes // 4:,}"
    return [parameters, str(len(found.layers)), how, f"{seconds:,.0f}", f"{held:.1f}"]


def _planned(model: str, found: Profile) -> Iterator[list[str]]:
    for planner, schedule, recompute in ASKED:
        question = Question(found, SERVERS, planner, schedule, 8, recompute=recompute)
        answer = rank(question)[0].prediction
        stages = answer.plan.partition
        yield [
            model,
            planner,
            schedule,
            "yes" if answer.plan.recompute else "no",
            "-".join(map(str, stages.replicas)),
            ", ".join(f"{held / GIB:.1f}" for held in answer.memory_bytes),
        ]


if __name__ == "__main__":
    main()
