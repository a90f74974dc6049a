"""Accuracy and loss on held-out data: a forward-only program through the same ranks."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from backend.pipeline.actions import Action, Forward, Recv, Send
from backend.pipeline.routing import makes, needs
from backend.pipeline.shape import Shape
from workers.data.ragged import PAD_TARGET
from workers.definitions.samples import Samples
from workers.runtime.compute.stage import StageModule, autocast
from workers.runtime.rank import Rank
from workers.runtime.samples.epoch import Padded


@dataclass(frozen=True, slots=True)
class Score:
    """Of all held-out samples: the share of targets predicted right (None: they are no classes),
    and the mean loss per sample (None: not finite, or there are no such samples)."""

    accuracy: float | None = None
    loss: float | None = None


class Evaluation:
    """One pass over the held-out samples with the newest weights, in evaluation mode.

    `correct` of `counted` predictions on this rank and `loss` of `samples`, padding left out;
    0 of 0 where this rank has no last stage, or where the targets are no classes. The loss is
    asked for `with_loss` alone: one that is made for training may not take what a model gives here.
    """

    def __init__(self, rank: Rank, shape: Shape, epoch: Padded, with_loss: bool = False) -> None:
        self._world, self._stages, self._messages = rank.world, rank.stages, rank.messages
        self._weights, self._shape, self._epoch = rank.state.weights, shape, epoch
        self._with_loss = with_loss
        self.correct = 0
        self.counted = 0
        self.loss = 0.0
        self.samples = 0
        for stage in rank.stages.modules:
            rank.groups.share(
                stage, (buffer for _, buffer in sorted(rank.stages.buffers(stage).items()))
            )
        rank.stages.train(False)
        rank.state.begin()
        rank.messages.expect(epoch.form)

    def score(self) -> Score:
        """That of all ranks; every rank calls it."""
        mine = [self.correct, self.counted, self.loss, self.samples]
        correct, counted, loss, samples = self._world.total(mine)
        mean = loss / samples if samples else math.nan
        return Score(correct / counted if counted else None, mean if math.isfinite(mean) else None)

    def perform(self, index: int, action: Action) -> None:
        """Do one action of the forward-only program."""
        match action:
            case Forward():
                self._forward(action)
            case Send(message, to):
                self._messages.send(message, to)
            case Recv(message):
                self._messages.receive(message)
            case _:
                raise AssertionError(f"an evaluation learns nothing, but has {action}")

    def _forward(self, action: Forward) -> None:
        number, microbatch = action.stage, action.microbatch
        stage = self._stages.at(number, self._epoch.form(microbatch))
        device = self._world.device
        if number > 0:
            inputs = self._messages.take(needs(action, self._shape))
        else:
            inputs = self._epoch.bundle(microbatch, device)
        weights = self._weights[number].evaluated
        try:
            with torch.no_grad():
                result = stage.run(inputs, weights)
                if stage.loss is not None:
                    self._judge(stage, result, self._epoch.answers(microbatch, device), microbatch)
        except Exception as error:
            raise self._stages.raised(error, number, inputs) from error
        if stage.loss is None:
            self._messages.put(makes(action, self._shape), result)

    def _judge(self, stage: StageModule, output: Any, targets: Samples, microbatch: int) -> None:
        """Count what is right, and add the loss if it is asked for. Where padding cannot be cut off
        an output that is no tensor, the microbatch's loss does not count."""
        self._count(output, targets, microbatch)
        if not self._with_loss:
            return
        real = self._epoch.num_real(microbatch)
        if real < self._epoch.form(microbatch)[0]:
            if not (isinstance(output, Tensor) and isinstance(targets, Tensor)):
                return
            output, targets = output[:real], targets[:real]
        assert stage.loss is not None, "only the last stage judges"
        with autocast(self._world.device, stage.precision):
            self.loss += real * float(stage.loss(output, targets).item())
        self.samples += real

    def _count(self, output: Any, targets: Samples, microbatch: int) -> None:
        predictions = predicted_classes(output, targets)
        if predictions is not None and isinstance(targets, Tensor):
            real = self._epoch.num_real(microbatch)
            counts = targets[:real] != PAD_TARGET
            self.correct += int((predictions[:real] == targets[:real])[counts].sum())
            self.counted += int(counts.sum())


def predicted_classes(output: Any, targets: Samples) -> Tensor | None:
    """The likeliest class per target; None where the targets are no classes.

    The classes are the output's last dimension, (N, ..., C) for targets (N, ...), or else
    its second one, (N, C, ...), as torch's own cross entropy has it.
    """
    if not (isinstance(output, Tensor) and isinstance(targets, Tensor)):
        return None
    if targets.is_floating_point():
        return None
    if output.shape[:-1] == targets.shape:
        return output.argmax(-1)
    if output.dim() > 1 and output.shape[:1] + output.shape[2:] == targets.shape:
        return output.argmax(1)
    return None
