"""What rules that send fewer bytes cost in what is learned: accuracy after equal epochs, by the
processes of any run.

    python -m tests.benchmarks.bench_bytes [--models recommender,characters,tuned] [--write]

Rows: two ranks, as two stages with a codec of messages, as two replicas with a codec of sums, or as
two sites. Bytes are those that the run counts, of both ranks, before headers, in training (of plain
rows: as predicted); `times fewer` is beside plain messages of the same cut, or beside sums of the
gradients after every update. Every contestant has the optimizer, rate and seeds of the others; none
is tuned. The range over the seeds is in brackets.

At equal seconds: an epoch takes the computing that is predicted from the profile without codecs,
and then a rank's half of the bytes at 100 Mbit/s, nothing overlapped, seconds of coding left out.
A rule goes on learning for those that the plain row's epochs take, twice as many epochs at most.
"""

import argparse
import os
import runpy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save_file

from backend.cluster.cluster import Cluster, Level
from backend.planning.codec_of_sums import read_codec_of_sums
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import read_sites
from backend.prediction.predict import predict
from backend.profiles.profile import Profile
from backend.runs.events import ACCURACY, HELD_OUT_LOSS, SENT, SITES_SENT, SUMS_SENT
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import ProfileSpec, TrainSpec
from tests.benchmarks.bench_local_losses import percents, values
from tests.benchmarks.evidence import evidence
from tests.benchmarks.real_ranks import ROOT, Told, profiled, told
from workers.definitions.loader import load

CODECS = ("", "bf16", "int8", "top10", "top3", "aq4", "aq2")
SUMS = ("", "dct:keep=0.005,every=64", "dct:keep=0.005,every=1", "dct:keep=0.001,every=1")
SITES = ("gaia:threshold=0.01", "gaia:threshold=0.05", "gaia:threshold=0.2")
SITES += ("diloco:every=20", "diloco:every=100")
RULES = (*CODECS, *SUMS, *SITES)


@dataclass(frozen=True)
class Learner:
    """A model, how it learns, and the layer in front of which two stages part (0: the middle one).
    `before` names a learner of the same model whose weights it begins with."""

    file: Path
    cut: int
    microbatch: int
    samples: int
    epochs: int
    rule: OptimizerSpec
    before: str = ""


MODELS = ROOT / "tests" / "benchmarks" / "models"
LEARNERS = {
    "recommender": Learner(MODELS / "recommender.py", 2, 64, 32768, 4, OptimizerSpec("adam", 2e-3)),
    "characters": Learner(MODELS / "characters.py", 0, 8, 2048, 4, OptimizerSpec("adam", 3e-3)),
    "tuned": Learner(MODELS / "tuned.py", 0, 8, 512, 4, OptimizerSpec("adam", 1e-3), "characters"),
}
BATCH = 2
LINK = 1.25e7
"""Bytes per second of 100 Mbit/s, each way."""
MOST = 2
"""Times the epochs of the plain rule, which others are trained for at most."""


@dataclass(frozen=True)
class Plain:
    """What a rule is beside: the plan without it. Bytes and seconds are of an epoch."""

    plan: Plan
    bytes: float
    computing: float

    @classmethod
    def of(cls, plan: Plan, profile: Profile, learner: Learner) -> "Plain":
        at_once = Cluster((Level(2, 1e15),))
        told_before = predict(profile, at_once, plan, learner.rule.name)
        updates = learner.samples // (plan.microbatch * plan.batch)
        return cls(
            plan, told_before.sent_bytes * updates, told_before.seconds_per_minibatch * updates
        )

    def seconds(self, num_bytes: float) -> float:
        return self.computing + num_bytes / 2 / LINK


def main() -> None:
    kept = evidence("bytes", "bench_bytes")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(LEARNERS))
    parser.add_argument("--epochs", type=int, default=0, help="0: as many as each model has")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rules", nargs="+", default=list(RULES), metavar="RULE")
    given = parser.parse_args()
    head = ["model, two ranks", "rule", "MB per epoch", "times fewer", "accuracy, held out"]
    head += ["loss, held out", "s per epoch at 100 Mbit/s", "epochs in the plain rule's seconds"]
    head += ["accuracy then", "load"]
    for name in given.models.split(","):
        with TemporaryDirectory() as folder:
            kept.table(name, head, rows(name, given, Path(folder)))


def rows(name: str, given: argparse.Namespace, folder: Path) -> Iterator[list[str]]:
    learner = LEARNERS[name]
    weights = learned(LEARNERS[learner.before], folder) if learner.before else ""
    learner = replace(learner, epochs=given.epochs or learner.epochs)
    profile = profiled(learner.file, ProfileSpec(1, learner.microbatch, repetitions=3))
    stop = len(profile.layers)
    cut = learner.cut or stop // 2
    stages = Partition((Stage(0, cut, (0,)), Stage(cut, stop, (1,))))
    replicas = Partition((Stage(0, stop, (0, 1)),))
    alone = Partition((Stage(0, stop, (0,)),))
    plan = Plan("bench", stages, "1f1b-flush", learner.microbatch, BATCH)
    plain = Plain.of(plan, profile, learner)
    for codec in filter(given.rules.__contains__, CODECS):
        coded = replace(plan, codecs=(codec,) if codec else ())
        yield row(given, learner, weights, f"{name}, stages", codec, coded, plain)
    plain = Plain.of(replace(plan, partition=replicas), profile, learner)
    for text in filter(given.rules.__contains__, SUMS):
        summed = replace(plain.plan, codec_of_sums=read_codec_of_sums(text))
        yield row(given, learner, weights, f"{name}, replicas", text, summed, plain)
    for text in filter(given.rules.__contains__, SITES):
        sites = read_sites(text)
        assert sites is not None
        apart = replace(plan, partition=alone, batch=1, num_pipelines=2)
        apart = replace(apart, sites=replace(sites, devices=1))
        yield row(given, learner, weights, f"{name}, sites", text, apart, plain)


def learned(learner: Learner, folder: Path) -> str:
    """The safetensors file of a model that this process trained as the learner does, in order."""
    torch.set_num_threads(1)  # as a rank has
    definition = load(learner.file)
    model = definition.model(0).train()
    (inputs, targets), _ = runpy.run_path(str(learner.file))["data"]()
    optimizer = torch.optim.Adam(model.parameters(), learner.rule.learning_rate)
    size = learner.microbatch * BATCH
    for _ in range(learner.epochs):
        for some, wanted in zip(inputs.split(size), targets.split(size), strict=True):
            definition.loss(model(some), wanted).backward()
            optimizer.step()
            optimizer.zero_grad()
    save_file(model.state_dict(), folder / "weights.safetensors")
    return str(folder / "weights.safetensors")


def row(
    given: argparse.Namespace,
    learner: Learner,
    weights: str,
    name: str,
    rule: str,
    plan: Plan,
    plain: Plain,
) -> list[str]:
    epochs = learner.epochs * (MOST if rule else 1)
    spec = TrainSpec(1, plan, optimizer=learner.rule, epochs=epochs)
    found = [
        told(replace(spec, seed=seed), learner.file, weights=weights) for seed in range(given.seeds)
    ]
    sent = mean(sent_bytes(each) / epochs for each in found) if rule else plain.bytes
    seconds = plain.seconds(sent)
    inside = min(epochs, int(learner.epochs * plain.seconds(plain.bytes) / seconds + 1e-9))
    return [
        name,
        rule or "plain",
        f"{sent / 1e6:.3f}",
        f"{plain.bytes / sent:.1f}",
        percents([values(each, ACCURACY)[learner.epochs - 1] for each in found]),
        f"{mean(values(each, HELD_OUT_LOSS)[learner.epochs - 1] for each in found):.3f}",
        f"{seconds:.2f}",
        f"{inside}" + (" (the most)" if rule and inside == epochs else ""),
        percents([values(each, ACCURACY)[inside - 1] for each in found]) if inside else "none yet",
        f"{os.getloadavg()[0]:.0f}",
    ]


def sent_bytes(found: Told) -> float:
    """Of all epochs."""
    return sum(sum(values(found, name)) for name in (SENT, SUMS_SENT, SITES_SENT))


if __name__ == "__main__":
    main()
