"""Training in one process that obeys the versions of the papers.

It knows no program and no executor: plain autograd, torch's own optimizers, and a list of
weight versions per stage. Which version microbatch k (from 0) meets at stage s of r_s replicas,
where w_s = d_s + a (d_s - 1) are in flight, d_s = ceil(sum of r from s on / r_s), of a pipeline
that runs ahead by a, and m make a batch:

    flush           floor(k / m): the newest
    stashing        max(0, floor(k / r_s) - w_s + 1)               PipeDream, section 3.3
    vertical sync   the version that has learned from no more than the input stage's
    naive           forward as stashing, backward floor(k / r_s)
    2bw             max(0, floor(k / m) - 1)                       2BW, section 3.1
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call

from backend.pipeline.codecs.catalog import CODECS
from backend.planning.plan import Partition
from tests.contract.runtime_cases import EPOCHS, MICROBATCH, SEED, STASHING, Case
from tests.contract.runtime_coding import Changed, Coded, residual
from tests.contract.runtime_exchanges import Between
from tests.contract.runtime_optimizers import averaged_model, optimizer_of, rate_factor
from tests.contract.runtime_rounding import ROUNDS, kept, norm, round_state, summed
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.runtime.compute.random_numbers import forward_seed
from workers.runtime.samples.epoch import Epoch

Weights = dict[str, Tensor]


@dataclass
class Trained:
    """The weights after all epochs and the loss of every update of the last stage."""

    weights: Weights
    losses: list[float]


@cache  # codecs and controls ask for the same ones again
def reference(case: Case, versions_count: bool = True) -> Trained:
    """`versions_count=False` is the negative control: everybody reads the newest weights."""
    torch.set_num_threads(1)  # as ranks have: sums by several round otherwise
    pipelines = [_Pipeline(case, versions_count) for _ in range(case.num_pipelines)]
    centre = {name: pipelines[0].averaged(name).clone() for name in pipelines[0].newest()}
    centre_average = averaged_model(case, centre)
    rule = Between(case, centre)
    torch.default_generator.manual_seed(0)  # `torch.manual_seed`: every device's
    train, _ = case.definition().data(not case.is_rounded)
    for number in range(EPOCHS):
        cutting = Cutting(MICROBATCH, case.unit, case.is_kept)
        epoch = Epoch.shuffled(TensorSplit(*train), cutting, SEED, number)
        for pipeline in pipelines:
            pipeline.begin(number)
        round_of_all = case.updated * case.num_pipelines
        for first in range(0, case.microbatches, round_of_all):
            for index, pipeline in enumerate(pipelines):
                start = first + index * case.updated
                for microbatch in range(start, start + case.updated):
                    pipeline.learn(epoch, microbatch)
            if case.num_pipelines > 1:
                rule.exchange(pipelines)
                if centre_average:
                    centre_average.follow(rule.centre)
    weights = pipelines[0].evaluated()
    if case.num_pipelines > 1:
        found = centre_average.named() if centre_average else rule.evaluated(pipelines)
        weights = {name: pipelines[0].version(weight) for name, weight in found.items()}
    return Trained(weights, pipelines[0].losses)


class _Pipeline:
    """One model that learns microbatch by microbatch."""

    def __init__(self, case: Case, versions_count: bool) -> None:
        self.case, self.losses, self.versions_count = case, [], versions_count
        self.rounds = ROUNDS.get(case.state)
        make = partial(case.definition().model, not case.is_rounded)
        self.model = seeded(make, SEED).train()
        for parameter in self.model.parameters():
            parameter.data = parameter.data.double()
        self.parameters = [
            {
                n: p
                for n, p in self.model.named_parameters()
                if p.requires_grad and case.stage_of(n) == stage
            }
            for stage in range(case.num_stages)
        ]
        self.optimizers = [optimizer_of(case, p) for p in self.parameters]
        self.averages = [averaged_model(case, p) for p in self.parameters]
        self.updates = [0] * case.num_stages
        self.kept: defaultdict[tuple[int, int], dict[int, Tensor]] = defaultdict(dict)
        self.samples: list[int] = []
        for stage in range(case.num_stages):
            self._round(stage)

    def begin(self, epoch: int) -> None:
        """A new epoch: the newest weights are version 0."""
        self.epoch, self.turn = epoch, 0
        self.versions = [[self.copy(stage)] for stage in range(self.case.num_stages)]
        self.waiting: list[list] = [[] for _ in range(self.case.num_stages)]

    def parameter(self, name: str) -> Tensor:
        return self.model.get_parameter(name).detach()

    def newest(self) -> Weights:
        return {n: self.version(p.detach()) for n, p in self.model.named_parameters()}

    def evaluated(self) -> Weights:
        found = {n: p.detach() for n, p in self.model.named_parameters()}
        for average in self.averages:
            found |= average.named() if average else {}
        return {name: self.version(weight) for name, weight in found.items()}

    def copy(self, stage: int) -> Weights:
        return {n: self.version(p.detach()) for n, p in self.parameters[stage].items()}

    def version(self, weight: Tensor) -> Tensor:
        """What a version has of a weight."""
        return kept(weight, self.rounds) if self.rounds else weight.clone()

    def averaged(self, name: str) -> Tensor:
        """What is averaged of a weight: its master, or its newest version."""
        weight = self.parameter(name)
        return weight if self.rounds is None or self.rounds.masters else self.version(weight)

    def _round(self, stage: int) -> None:
        """What an update of the stage leaves behind."""
        if self.rounds and not self.rounds.masters:
            for parameter in self.parameters[stage].values():
                parameter.data.copy_(self.version(parameter.detach()))
        if self.rounds and self.rounds.state:
            round_state(self.optimizers[stage])

    def learn(self, epoch: Epoch, microbatch: int) -> None:
        """One microbatch, and the updates that are complete with it."""
        turn, self.turn = self.turn, self.turn + 1
        found = self._gradients(epoch, microbatch, turn)
        most = self.case.asked.get("clip_norm")
        apart = "clip_by" in self.case.asked
        for stage, r in enumerate(self.case.stage_replicas):
            self.waiting[stage].append(found)
            size = r if self.case.schedule in STASHING else self.case.batch
            if len(self.waiting[stage]) == size and (apart or most is None):
                self._update(stage, self._clipping([stage], most) if most else 1.0)
        if most and not apart and len(self.waiting[0]) == self.case.batch:
            stages = range(self.case.num_stages)
            factor = self._clipping(stages, most)
            for stage in stages:
                self._update(stage, factor)

    def _version(self, stage: int, turn: int) -> int:
        if not self.versions_count:
            return -1
        replicas = self.case.stage_replicas
        r = replicas[stage]
        if self.case.schedule == "2bw":
            return max(0, turn // self.case.batch - 1)
        if self.case.schedule not in STASHING:
            return turn // self.case.batch
        if self.case.schedule == "pipedream-vertical-sync":
            learned = max(0, turn // replicas[0] + 1 - self._in_flight(0))
            return learned * replicas[0] // r
        return max(0, turn // r + 1 - self._in_flight(stage))

    def _in_flight(self, stage: int) -> int:
        """w_s."""
        replicas = self.case.stage_replicas
        rounds = -(-sum(replicas[stage:]) // replicas[stage])
        return rounds + self.case.run_ahead * (rounds - 1)

    def _gradients(self, epoch: Epoch, microbatch: int, turn: int) -> tuple[float, float, Weights]:
        """The share of a full microbatch, the loss, the gradients of that share of it."""
        self.samples = epoch.groups[microbatch][0].tolist()
        stages = range(self.case.num_stages)
        weights: Weights = {}
        for stage in stages:
            weights |= self.versions[stage][self._version(stage, turn)]
        leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
        is_cast = self.rounds is not None and self.rounds.weights
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_cast):
            output = self._output(leaves, epoch.inputs(microbatch), microbatch)
            loss = nn.functional.cross_entropy(output, epoch.targets(microbatch))
        if self.case.schedule == "pipedream-naive":
            for stage in stages:
                newest = self.versions[stage][turn // self.case.stage_replicas[stage]]
                for name, weight in newest.items():
                    leaves[name].data.copy_(weight)  # under the graph, as naive pipelining does
        share = len(epoch.targets(microbatch)) / MICROBATCH
        found = torch.autograd.grad(loss, list(leaves.values()), torch.full_like(loss, share))
        return share, float(loss.detach()), dict(zip(leaves, found, strict=True))

    def _output(self, weights: Weights, value: Tensor, microbatch: int) -> Tensor:
        """Stage by stage, so that each begins its noise as the runtime's does."""
        if not isinstance(self.model, nn.Sequential):
            if self.case.codec:
                self.model.forward = partial(residual, self.model, self._coded)
            return functional_call(self.model, weights, (value,))
        bounds = self.case.bounds
        for stage, (first, stop) in enumerate(pairwise(bounds)):
            torch.default_generator.manual_seed(forward_seed(SEED, self.epoch, stage, microbatch))
            part = self.model[first:stop]
            own = {name: weights[name] for name, _ in part.named_parameters()}
            value = functional_call(part, own, (value,))
            (value,) = self._coded(stop, value)
        return value

    def _coded(self, layer: int, *alive: Tensor) -> tuple[Tensor, ...]:
        """What is alive in front of a layer, as its stage reads it."""
        cut = self.case.bounds.index(layer) - 1 if layer in self.case.bounds[1:-1] else None
        if not self.case.codec or cut is None or not self.crosses(cut):
            return alive
        if not CODECS[self.case.codec].keeps_samples:
            return tuple(Coded.apply(each, self.case.codec) for each in alive)
        return tuple(
            Changed.apply(each, self.case.codec, self.kept[cut, place], self.samples)
            for place, each in enumerate(alive)
        )

    def crosses(self, cut: int) -> bool:
        """Whether messages over the cut behind a stage go to another rank: those of a V's turn do
        not."""
        return self._partition.crosses(cut)

    @cached_property
    def _partition(self) -> Partition:
        return self.case.spec().plan.partition

    def _average_gradient(self, stage: int, factor: float = 1.0) -> None:
        """`factor` times the mean of the waiting gradients."""
        waiting = self.waiting[stage]
        count = sum(share for share, _, _ in waiting)
        for name, parameter in self.parameters[stage].items():
            total = self._summed(stage, name) / (count / factor)
            parameter.grad = total.double()

    def _summed(self, stage: int, name: str) -> Tensor:
        found = [gradients[name] for _, _, gradients in self.waiting[stage]]
        return summed(found, self.case.stage_replicas[stage])

    def _update(self, stage: int, factor: float = 1.0) -> None:
        self._average_gradient(stage, factor)
        for group in self.optimizers[stage].param_groups:
            group["lr"] = group["full"] * self._factor(stage)
        self.optimizers[stage].step()
        self._round(stage)
        if average := self.averages[stage]:
            average.follow(self.parameters[stage])
        self.updates[stage] += 1
        self.versions[stage].append(self.copy(stage))
        if stage == self.case.num_stages - 1:
            shares = sum(share for share, _, _ in self.waiting[stage])
            total = sum(share * loss for share, loss, _ in self.waiting[stage])
            self.losses.append(total / shares)
        self.waiting[stage] = []

    def _clipping(self, stages: Sequence[int], most: float) -> float:
        """What brings the gradient of these stages to the norm that is allowed, by the formula of
        torch.nn.utils.clip_grad_norm_."""
        sums = [self._summed(stage, name) for stage in stages for name in self.parameters[stage]]
        count = sum(share for share, _, _ in self.waiting[stages[0]])
        return min(1.0, most / (norm(sums) / count + 1e-6))

    def _factor(self, stage: int) -> float:
        replicas, batch = self.case.stage_replicas[stage], self.case.batch
        size = replicas if self.case.schedule in STASHING else batch
        total = EPOCHS * self.case.microbatches // self.case.num_pipelines // size
        return rate_factor(self.case, total, self.updates[stage])
