"""Metrics of held-out data: a forward-only program through the same ranks."""

import math
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from backend.errors import first_line
from backend.pipeline.actions import Action, Forward, Recv, Send
from backend.pipeline.routing import makes, needs
from backend.pipeline.shape import Shape
from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY, of_stage
from workers.data.ragged import PAD_TARGET
from workers.definitions.metrics import Metrics, Sums, merged, ratios, sums_of
from workers.definitions.samples import Samples, mapped, target_of, tensors
from workers.runtime.compute.stage import StageModule, autocast
from workers.runtime.rank import Rank
from workers.runtime.samples.epoch import Padded

TOKENS = ""
"""The cross entropy of tokens, whose mean the perplexity is made of; no metric has this name."""


class Evaluation:
    """One pass over the held-out samples with `Weights.evaluated`, in evaluation mode.

    `sums` are those of this rank, padding left out; none where it has no last stage. `problem` is
    why there is no loss: one that is made for training may not take what a model gives here. Where
    the loss `is_needed`, that is raised.
    """

    def __init__(
        self,
        rank: Rank,
        shape: Shape,
        epoch: Padded,
        metrics: Metrics | None = None,
        is_needed: bool = False,
    ) -> None:
        self._world, self._stages, self._messages = rank.world, rank.stages, rank.messages
        self._weights = {stage: each.evaluated for stage, each in rank.state.weights.items()}
        self._shape, self._epoch = shape, epoch
        self._metrics, self._is_needed = metrics, is_needed
        self.sums: Sums = {}
        self.problem = ""
        for stage in rank.stages.modules:
            rank.groups.share(
                stage, (buffer for _, buffer in sorted(rank.stages.buffers(stage).items()))
            )
        rank.stages.train(False)
        rank.state.begin()
        rank.messages.expect(epoch.form)

    def score(self) -> dict[str, float]:
        """The metrics over all ranks, by name; those that are not finite are left out. Every rank
        calls it."""
        if self.problem:
            self.sums.pop(HELD_OUT_LOSS, None)
        found = ratios(self._world.told(merged(self._world.gathered(self.sums))))
        entropy = found.pop(TOKENS, None)
        if entropy is not None and entropy < math.log(sys.float_info.max):
            found.setdefault(PERPLEXITY, math.exp(entropy))
        return found

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
        weights = self._weights[number]
        try:
            with torch.no_grad():
                result = stage.run(inputs, weights)
                if stage.has_loss:
                    answers = self._epoch.answers(microbatch, device)
                    self._judge(stage, number, result, answers, microbatch)
        except Exception as error:
            raise self._stages.raised(error, number, inputs) from error
        if stage.loss is None:
            self._messages.put(makes(action, self._shape), result)

    def _judge(
        self, stage: StageModule, number: int, result: Any, targets: Samples, microbatch: int
    ) -> None:
        """Add what the samples say: the loss, the definition's own metrics, and what can be said of
        any classes; of a stage's own head loss and accuracy, under its name. A microbatch whose
        padding cannot be cut off counts for nothing."""
        output = stage.judged(result)
        size, real = self._epoch.form(microbatch)[0], self._epoch.num_real(microbatch)
        if real == 0:
            return
        if real < size:
            if not (_can_be_cut(size, output) and _can_be_cut(size, tensors(targets))):
                return
            output, targets = _first(real, output), mapped(targets, lambda each: each[:real])
        target = target_of(targets)
        found = {**of_classes(output, target), **self._loss(stage, output, targets, real)}
        if stage.local is not None:
            found = {of_stage(n, number): found[n] for n in (ACCURACY, HELD_OUT_LOSS) if n in found}
        elif self._metrics is not None:
            found |= sums_of(self._metrics(output, target), real)
        self.sums = merged([self.sums, found])

    def _loss(self, stage: StageModule, output: Any, targets: Samples, real: int) -> Sums:
        of_model = stage.local.of_model if stage.local is not None else stage.loss
        assert of_model is not None, "a stage without a loss judges nothing"
        if self.problem:
            return {}
        try:
            with autocast(self._world.device, stage.precision):
                loss = float(of_model(output, targets).item())
        except Exception as error:
            if self._is_needed:
                raise
            self.problem = first_line(error) or type(error).__name__
            return {}
        return {HELD_OUT_LOSS: (real * loss, real)}


def of_classes(output: Any, targets: Samples) -> Sums:
    """How many targets are predicted right, and of texts (samples x tokens) the cross entropy of
    each token; nothing where the targets are no classes."""
    predictions = predicted_classes(output, targets)
    if predictions is None or not isinstance(targets, Tensor):
        return {}
    counts = targets != PAD_TARGET
    counted = int(counts.sum())
    found = {ACCURACY: (float((predictions == targets)[counts].sum()), float(counted))}
    if _are_tokens(output, targets, targets[counts]):
        of_tokens = nn.functional.cross_entropy(
            output.flatten(0, -2).float(),
            targets.flatten(),
            ignore_index=PAD_TARGET,
            reduction="sum",
        )
        found[TOKENS] = float(of_tokens.item()), float(counted)
    return found


def _are_tokens(output: Tensor, targets: Tensor, counted: Tensor) -> bool:
    """Are these texts, samples x tokens, whose targets all have a score?"""
    if targets.dim() != 2 or output.shape[:-1] != targets.shape or not len(counted):
        return False
    return bool((counted >= 0).all() and (counted < output.shape[-1]).all())


def _can_be_cut(size: int, value: Any) -> bool:
    """Is it made of tensors with a row per sample?"""
    leaves = [leaf for leaf in tree_leaves(value) if leaf is not None]
    return all(isinstance(each, Tensor) and each.shape[:1] == (size,) for each in leaves)


def _first(real: int, value: Any) -> Any:
    """The same structure with the first samples alone."""
    return tree_map(lambda leaf: leaf if leaf is None else leaf[:real], value)


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
