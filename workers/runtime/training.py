"""What each action of a training program does to tensors."""

import math
from collections.abc import Callable
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
from workers.runtime.data import Epoch
from workers.runtime.losses import Losses
from workers.runtime.reading import applied, last_reads
from workers.runtime.seated import Seated
from workers.runtime.stage import Held, Tensors

T = TypeVar("T")


class LossNotFinite(StageflowError):
    """The loss became infinite or no number; the message names the minibatch."""

    advice = "Lower the learning rate (a tenth is a good next try), or look at the data."


class Training:
    """One segment. `perform` is called with every action of this rank's program, in order."""

    def __init__(self, seated: Seated, program: Program, epoch: Epoch, losses: Losses) -> None:
        self._seated, self._epoch, self._losses = seated, epoch, losses
        self._shape = program.shape
        self._last_reads = last_reads(program.ranks[seated.seat.rank])
        self._applied = {stage: applied(program, stage) for stage in seated.stages}
        self._held: dict[tuple[int, int], Held] = {}
        self._gradients: dict[tuple[int, int], Tensors] = {}
        self._loss_sum = 0.0
        seated.train(True)

    def perform(self, index: int, action: Action) -> None:
        """Do what the table in `backend.pipeline.actions` says."""
        match action:
            case Forward():
                self._forward(action)
            case Backward():
                self._backward(action)
            case BackwardInput():
                self._backward_input(action)
            case BackwardWeight():
                self._backward_weight(action)
            case Step():
                self._step(index, action)
            case Send(message, to):
                self._seated.mail.send(message, to)
            case Recv(message):
                self._seated.mail.receive(message)
            case AllReduce(stage):
                self._all_reduce(stage)
            case Recompute() | Average():
                raise AssertionError(f"this runtime does not run {action}")

    def _forward(self, action: Forward) -> None:
        stage = self._seated.stages[action.stage]
        inputs, target = self._inputs(action), None
        if stage.loss is not None:
            target = self._epoch.targets(action.microbatch).to(self._seated.world.device)
        weights = self._seated.weights[action.stage].at(action.version)
        outputs, held = self._blaming(
            action.stage, inputs, lambda: stage.forward(inputs, weights, target)
        )
        if stage.loss is not None:
            self._note_loss(action.microbatch, outputs[0])
        self._held[action.stage, action.microbatch] = held
        bundle = tuple(tensor.detach() for tensor in outputs)
        self._seated.mail.put(makes(action, self._shape), bundle)

    def _inputs(self, action: Forward) -> Tensors:
        if action.stage > 0:
            return self._seated.mail.take(needs(action, self._shape))
        return (self._epoch.inputs(action.microbatch).to(self._seated.world.device),)

    def _backward(self, action: Backward) -> None:
        stage = self._seated.stages[action.stage]
        held = self._held.pop((action.stage, action.microbatch))
        gradients = self._seated.mail.take(needs(action, self._shape))
        of_inputs, of_weights = self._blaming(
            action.stage, held.inputs, lambda: stage.backward(held, gradients)
        )
        self._seated.weights[action.stage].add(of_weights)
        self._seated.mail.put(makes(action, self._shape), of_inputs)

    def _backward_input(self, action: BackwardInput) -> None:
        place = action.stage, action.microbatch
        gradients = self._seated.mail.take(needs(action, self._shape))
        of_inputs = self._seated.stages[action.stage].backward_input(self._held[place], gradients)
        self._gradients[place] = gradients
        self._seated.mail.put(makes(action, self._shape), of_inputs)

    def _backward_weight(self, action: BackwardWeight) -> None:
        place = action.stage, action.microbatch
        held, gradients = self._held.pop(place), self._gradients.pop(place)
        found = self._seated.stages[action.stage].backward_weight(held, gradients)
        self._seated.weights[action.stage].add(found)

    def _all_reduce(self, stage: int) -> None:
        """Sum the gradients over the replicas; on the last stage the loss travels with them."""
        weights = self._seated.weights[stage]
        loss = torch.tensor([self._loss_sum], device=self._seated.world.device)
        *sums, loss = self._seated.groups[stage].sum([*weights.gradients, loss])
        weights.replace_gradients(sums)
        self._loss_sum = float(loss.item())

    def _step(self, index: int, action: Step) -> None:
        """Divide by the number of gradients in the sum, wherever they were made."""
        microbatches = self._applied[action.stage][action.version]
        self._seated.weights[action.stage].step(
            action.version,
            len(microbatches),
            awaited=lambda v: self._last_reads.get((action.stage, v), -1) > index,
        )
        if self._seated.stages[action.stage].loss is not None:
            self._losses.add(microbatches[-1], self._loss_sum / len(microbatches))
            self._loss_sum = 0.0

    def _note_loss(self, microbatch: int, loss: Tensor) -> None:
        value = float(loss.item())
        if not math.isfinite(value):
            minibatch = self._losses.minibatch(microbatch)
            epoch = self._losses.epoch + 1
            raise LossNotFinite(f"The loss of minibatch {minibatch} (epoch {epoch}) is {value}.")
        self._loss_sum += value

    def _blaming(self, stage: int, inputs: Tensors, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            raise self._seated.raised(error, stage, inputs) from error
