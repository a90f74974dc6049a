"""What each action of a training program does to tensors."""

import math
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
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
from backend.pipeline.routing import makes, needs
from backend.runs.events import LOSS, of_stage
from workers.definitions.metrics import Log, Sums, merged, ratios
from workers.definitions.module_state.module_state import ModuleState
from workers.definitions.samples import Samples
from workers.runtime.checkpoints.observer import UNOBSERVED, TrainingObserver
from workers.runtime.compute.random_numbers import forward_seed, set_seed
from workers.runtime.compute.stage import Activations, StageModule, Tensors
from workers.runtime.execution.losses import Losses
from workers.runtime.execution.program import RankProgram, before_reductions
from workers.runtime.execution.updates import Updates
from workers.runtime.rank import Rank
from workers.runtime.samples.epoch import Source

T = TypeVar("T")


class LossNotFinite(StageflowError):
    """The loss became infinite or no number; the message names the minibatch."""

    advice = "Lower the learning rate (a tenth is a good next try), or look at the data."


@dataclass(frozen=True, slots=True)
class ForwardInput:
    """What a forward was given: enough to run it once more."""

    inputs: Tensors
    weights: dict[str, Tensor]
    target: Samples | None
    seed: int
    state: ModuleState | None = None


class Training:
    """One segment of a run of `seed`. `perform` is called with every action of this rank's
    program, in order. `log` is where the loss logs, if it does."""

    def __init__(
        self,
        rank: Rank,
        program: RankProgram,
        epoch: Source,
        losses: Losses,
        seed: int,
        observer: TrainingObserver = UNOBSERVED,
        log: Log | None = None,
    ) -> None:
        self._stages, self._weights, self._messages = rank.stages, rank.state.weights, rank.messages
        self._loss_scale, self._device = rank.state.loss_scale, rank.world.device
        self._epoch, self._losses, self._seed, self._observer = epoch, losses, seed, observer
        self._shape, self._applied = program.shape, program.applied
        self._overlapped = before_reductions(program.actions)
        self._updates = Updates(rank, program, epoch.share, observer.averaged)
        self._activations: dict[tuple[int, int], Activations] = {}
        self._to_recompute: dict[tuple[int, int], ForwardInput] = {}
        self._states: dict[int, ModuleState | None] = {}
        self._recomputed = program.recomputed
        self._loss_sums: defaultdict[int, float] = defaultdict(float)
        self._log, self._logged = log, Sums()
        rank.stages.train(True)
        rank.state.begin()
        rank.messages.expect(epoch.form, epoch.samples)

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
                self._messages.send(message, to)
            case Recv(message):
                self._messages.receive(message)
            case AllReduce(stage):
                self._all_reduce(stage)
            case Average(stage):
                self._updates.average(stage)

    def _forward(self, action: Forward) -> None:
        number, microbatch = action.stage, action.microbatch
        stage, given = self._stage(action), self._gather(action)
        if self._recomputed[number]:
            self._states[number] = state = stage.state(self._states.get(number))
            given = replace(given, state=state)
        with torch.set_grad_enabled(not self._recomputed[number]):
            outputs, kept = self._blaming(number, given.inputs, lambda: self._run(stage, given))
        if stage.loss is not None:
            self._note_loss(number, microbatch, outputs[0])
            self._blaming(number, given.inputs, lambda: self._note_logged(microbatch))
        if self._recomputed[number]:
            self._to_recompute[number, microbatch] = given
        else:
            self._activations[number, microbatch] = kept
        bundle = tuple(tensor.detach() for tensor in outputs)
        self._messages.put(makes(action, self._shape), bundle)

    def _gather(self, action: Forward) -> ForwardInput:
        stage, microbatch = action.stage, action.microbatch
        place = self._epoch.first + microbatch
        if stage > 0:
            inputs = self._messages.take(needs(action, self._shape))
        else:
            self._observer.forward(place)
            inputs = self._epoch.bundle(microbatch, self._device)
        has_loss = self._stages.modules[stage].has_loss
        target = self._epoch.answers(microbatch, self._device) if has_loss else None
        weights = self._weights[stage].at(action.version)
        seed = forward_seed(self._seed, self._losses.epoch, stage, place)
        return ForwardInput(inputs, weights, target, seed)

    def _stage(self, action: Forward | Recompute) -> StageModule:
        return self._stages.at(action.stage, self._epoch.form(action.microbatch))

    def _run(self, stage: StageModule, given: ForwardInput) -> tuple[Tensors, Activations]:
        set_seed(given.seed, self._device)
        return stage.forward(given.inputs, given.weights, given.target)

    def _recompute(self, action: Recompute) -> None:
        key = action.stage, action.microbatch
        given = self._to_recompute.pop(key)
        stage = self._stage(action)
        with given.state.met_again(stage.module) if given.state else nullcontext():
            self._activations[key] = self._run(stage, given)[1]
        if self._log is not None and stage.loss is not None:
            self._log.taken()  # what its first forward has logged already

    def _backward(self, index: int, action: Backward) -> None:
        number = action.stage
        stage, weights = self._stages.modules[number], self._weights[number]
        kept = self._activations.pop((number, action.microbatch))
        if stage.local is not None:
            loss = self._blaming(number, None, lambda: stage.local_loss(kept))
            self._note_loss(number, action.microbatch, loss)
            if self._log is not None:
                self._log.taken()  # the run's log is of the model's output
        gradients = self._output_gradients(action, kept)
        sums = weights.sums
        with self._filling(index, number, kept):
            of_inputs, weights.sums = self._blaming(
                number, kept.inputs, lambda: stage.backward_onto(kept, gradients, sums)
            )
        self._messages.put(makes(action, self._shape), of_inputs)

    def _backward_input(self, action: BackwardInput) -> None:
        kept = self._activations[action.stage, action.microbatch]
        gradients = self._output_gradients(action, kept)
        of_inputs = self._stages.modules[action.stage].backward_input(kept, gradients)
        self._messages.put(makes(action, self._shape), of_inputs)

    def _output_gradients(self, action: Backward | BackwardInput, kept: Activations) -> Tensors:
        """The gradients of what went out. That of a loss is its share of the samples, scaled;
        () where that is 1."""
        if not self._stages.modules[action.stage].has_loss:
            return self._messages.take(needs(action, self._shape))
        scale = self._loss_scale.value if self._loss_scale else 1.0
        factor = scale * self._epoch.share(action.microbatch)
        return () if factor == 1 else tuple(torch.full_like(o, factor) for o in kept.outputs)

    def _backward_weight(self, index: int, stage: int, microbatch: int) -> None:
        kept, weights = self._activations.pop((stage, microbatch)), self._weights[stage]
        module = self._stages.modules[stage]
        with self._filling(index, stage, kept):
            weights.sums = [*module.backward_weight(kept, weights.sums).values()]

    def _filling(self, index: int, stage: int, kept: Activations) -> AbstractContextManager[None]:
        """What a backward runs in: of replicas, gradients go into buckets, which are sent while the
        others are made where their reduction is next."""
        buckets = self._weights[stage].buckets
        if buckets is None:
            return nullcontext()
        return buckets.filling(kept.weights, index in self._overlapped)

    def _all_reduce(self, stage: int) -> None:
        """Sum the gradients over the replicas; where a stage has a loss, this goes with them, and
        what the last one has logged after them."""
        module, buckets = self._stages.modules[stage], self._weights[stage].buckets
        assert buckets is not None, "a single replica has nothing to reduce"
        total = buckets.reduce(self._loss_sums[stage])
        if module.has_loss:
            self._loss_sums[stage] = total
        if module.loss is not None and self._log is not None:
            self._logged = merged(buckets.group.gathered(self._logged))

    def _step(self, index: int, action: Step) -> None:
        """The loss is told and the place known before the new weights are there, because pipelines
        that waited for them are averaged at once."""
        microbatches = self._applied[action.stage][action.version]
        last, stage = self._epoch.first + microbatches[-1], self._stages.modules[action.stage]
        if stage.has_loss:
            mean = self._loss_sums.pop(action.stage) / self._updates.count(action)
            if stage.loss is not None:
                self._losses.add(last, mean, ratios(self._logged))
                self._logged = {}
            else:
                self._losses.add(last, mean, {}, of_stage(LOSS, action.stage))
        self._observer.updating(action.stage, last + 1)
        self._updates.step(index, action)
        if not self._updates.is_due:
            self._observer.updated()

    def _note_loss(self, stage: int, microbatch: int, loss: Tensor) -> None:
        value = float(loss.item())
        if not math.isfinite(value):
            minibatch = self._losses.minibatch(self._epoch.first + microbatch)
            epoch = self._losses.epoch + 1
            raise LossNotFinite(f"The loss of minibatch {minibatch} (epoch {epoch}) is {value}.")
        self._loss_sums[stage] += value * self._epoch.share(microbatch)

    def _note_logged(self, microbatch: int) -> None:
        if self._log is not None:
            share = self._epoch.share(microbatch)
            values = self._log.taken().items()
            told = {name: (value * share, share) for name, value in values}
            self._logged = merged([self._logged, told])

    def _blaming(self, stage: int, inputs: Tensors | None, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            raise self._stages.raised(error, stage, inputs) from error
