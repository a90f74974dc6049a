"""What each action of a training program does to tensors."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from backend.errors import StageflowError
from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.program import Program
from backend.pipeline.routing import makes, needs
from workers.definitions.samples import Samples
from workers.runtime.checkpoint import UNMARKED, Marks
from workers.runtime.data import Source
from workers.runtime.losses import Losses
from workers.runtime.noise import seed, sow
from workers.runtime.reading import applied, before_reductions, last_reads
from workers.runtime.seated import Seated
from workers.runtime.stage import Held, Stage, Tensors
from workers.runtime.updating import Updating

T = TypeVar("T")


class LossNotFinite(StageflowError):
    """The loss became infinite or no number; the message names the minibatch."""

    advice = "Lower the learning rate (a tenth is a good next try), or look at the data."


@dataclass(frozen=True, slots=True)
class Given:
    """What a forward was given: enough to run it once more."""

    inputs: Tensors
    weights: dict[str, Tensor]
    target: Samples | None
    seed: int


class Training:
    """One segment. `perform` is called with every action of this rank's program, in order."""

    def __init__(
        self,
        seated: Seated,
        program: Program,
        epoch: Source,
        losses: Losses,
        checkpoints: Marks = UNMARKED,
    ) -> None:
        self._seated, self._epoch, self._losses = seated, epoch, losses
        self._checkpoints = checkpoints
        self._shape = program.shape
        actions = program.ranks[seated.seat.rank]
        lane = seated.seat.lane
        self._travelling = before_reductions(actions)
        self._applied = {stage: applied(program, stage, lane) for stage in seated.stages}
        self._updating = Updating(
            seated, self._applied, last_reads(actions), epoch.share, checkpoints.averaged
        )
        self._held: dict[tuple[int, int], Held] = {}
        self._given: dict[tuple[int, int], Given] = {}
        self._loss_sum = 0.0
        seated.train(True)
        seated.mail.expect(epoch.form)

    def perform(self, index: int, action: Action) -> None:
        """Do what the table in `backend.pipeline.actions` says."""
        match action:
            case Forward():
                self._forward(action)
            case Recompute():
                self._recompute(action)
            case Backward():
                self._backward(index, action)
            case BackwardInput():
                self._backward_input(action)
            case BackwardWeight(stage, microbatch):
                self._backward_weight(index, stage, microbatch)
            case Step():
                self._step(index, action)
            case Send(message, to):
                self._seated.mail.send(message, to)
            case Recv(message):
                self._seated.mail.receive(message)
            case AllReduce(stage):
                self._all_reduce(stage)
            case Average(stage):
                self._updating.average(stage)

    def _forward(self, action: Forward) -> None:
        number, microbatch = action.stage, action.microbatch
        stage, given = self._stage(action), self._gather(action)
        with torch.set_grad_enabled(not self._shape.recompute):
            outputs, held = self._blaming(number, given.inputs, lambda: self._run(stage, given))
        if stage.loss is not None:
            self._note_loss(microbatch, outputs[0])
        if self._shape.recompute:
            self._given[number, microbatch] = given
        else:
            self._held[number, microbatch] = held
        bundle = tuple(tensor.detach() for tensor in outputs)
        self._seated.mail.put(makes(action, self._shape), bundle)

    def _gather(self, action: Forward) -> Given:
        stage, microbatch, device = action.stage, action.microbatch, self._seated.world.device
        if stage > 0:
            inputs = self._seated.mail.take(needs(action, self._shape))
        else:
            self._checkpoints.forward(self._epoch.first + microbatch)
            inputs = self._epoch.bundle(microbatch, device)
        is_last = self._seated.stages[stage].loss is not None
        target = self._epoch.answers(microbatch, device) if is_last else None
        weights = self._seated.weights[stage].at(action.version)
        place = self._epoch.first + microbatch
        number = seed(self._seated.seed, self._losses.epoch, stage, place)
        return Given(inputs, weights, target, number)

    def _stage(self, action: Forward | Recompute) -> Stage:
        return self._seated.stage(action.stage, self._epoch.form(action.microbatch))

    def _run(self, stage: Stage, given: Given) -> tuple[Tensors, Held]:
        sow(given.seed, self._seated.world.device)
        return stage.forward(given.inputs, given.weights, given.target)

    def _recompute(self, action: Recompute) -> None:
        key = action.stage, action.microbatch
        given = self._given.pop(key)
        sow(given.seed, self._seated.world.device)
        self._held[key] = self._stage(action).again(given.inputs, given.weights, given.target)

    def _backward(self, index: int, action: Backward) -> None:
        number = action.stage
        stage, held = self._seated.stages[number], self._held.pop((number, action.microbatch))
        gradients, weights = self._arrived(action, held), self._seated.weights[number]
        if number in self._seated.buckets:
            over = self._travel(index, number, held)
            of_inputs, found = self._blaming(
                number, held.inputs, lambda: stage.backward(held, gradients)
            )
            over()
            weights.add(found)
        else:
            sums = weights.sums
            of_inputs, weights.sums = self._blaming(
                number, held.inputs, lambda: stage.backward_onto(held, gradients, sums)
            )
        self._seated.mail.put(makes(action, self._shape), of_inputs)

    def _backward_input(self, action: BackwardInput) -> None:
        held = self._held[action.stage, action.microbatch]
        gradients = self._arrived(action, held)
        of_inputs = self._seated.stages[action.stage].backward_input(held, gradients)
        self._seated.mail.put(makes(action, self._shape), of_inputs)

    def _arrived(self, action: Backward | BackwardInput, held: Held) -> Tensors:
        """The gradients of what went out. That of a loss is its share of the samples, scaled;
        () where that is 1."""
        if self._seated.stages[action.stage].loss is None:
            return self._seated.mail.take(needs(action, self._shape))
        scale = self._seated.loss_scale.value if self._seated.loss_scale else 1.0
        factor = scale * self._epoch.share(action.microbatch)
        return () if factor == 1 else tuple(torch.full_like(o, factor) for o in held.outputs)

    def _backward_weight(self, index: int, stage: int, microbatch: int) -> None:
        held = self._held.pop((stage, microbatch))
        over = self._travel(index, stage, held)
        found = self._seated.stages[stage].backward_weight(held)
        over()
        self._seated.weights[stage].add(found)

    def _travel(self, index: int, stage: int, held: Held) -> Callable[[], None]:
        """Let the gradients travel while they are made, where their reduction is next."""
        if index not in self._travelling or not held.outputs:
            return _nothing
        return self._seated.buckets[stage].travel(held.weights)

    def _all_reduce(self, stage: int) -> None:
        """Sum the gradients over the replicas; on the last stage the loss travels with them."""
        has_loss = self._seated.stages[stage].loss is not None
        total = self._seated.buckets[stage].reduce(self._loss_sum if has_loss else 0.0)
        if has_loss:
            self._loss_sum = total

    def _step(self, index: int, action: Step) -> None:
        """The loss is told and the place known before the new weights are there, because lanes
        that waited for them meet at once."""
        microbatches = self._applied[action.stage][action.version]
        last = self._epoch.first + microbatches[-1]
        if self._seated.stages[action.stage].loss is not None:
            self._losses.add(last, self._loss_sum / self._updating.count(action))
            self._loss_sum = 0.0
        self._checkpoints.updating(action.stage, last + 1)
        self._updating.step(index, action)
        if not self._updating.is_due:
            self._checkpoints.updated()

    def _note_loss(self, microbatch: int, loss: Tensor) -> None:
        value = float(loss.item())
        if not math.isfinite(value):
            minibatch = self._losses.minibatch(self._epoch.first + microbatch)
            epoch = self._losses.epoch + 1
            raise LossNotFinite(f"The loss of minibatch {minibatch} (epoch {epoch}) is {value}.")
        self._loss_sum += value * self._epoch.share(microbatch)

    def _blaming(self, stage: int, inputs: Tensors, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            raise self._seated.raised(error, stage, inputs) from error


def _nothing() -> None:
    """Where no gradients travel, nothing is to be ended."""
