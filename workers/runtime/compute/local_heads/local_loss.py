"""The losses of a run whose stages learn each for itself, made from its data and its model."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.runs.request.local_heads import LINEAR, LOW_RANK, SIMILARITY
from backend.runs.request.spec import TrainSpec
from workers.data.split import DataSet
from workers.definitions.definition import Loss
from workers.definitions.samples import Samples, target_of
from workers.definitions.seeds import derived
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.local_heads.catalog import HEADS
from workers.runtime.compute.local_heads.features import Features
from workers.runtime.compute.local_heads.head import Bundle, HeadSize, LocalHead

HEAD_SEED = 18
"""Tells the draws of heads from others of the run's seed."""


@dataclass(frozen=True, slots=True)
class LocalLoss:
    """A stage's `head` and the loss that the last stage has."""

    head: LocalHead
    of_model: Loss

    def __call__(self, bundle: Bundle, answers: Samples) -> Tensor:
        """The loss of what the stage hands on."""
        return self.head.loss(bundle, answers, self.of_model)


@dataclass(frozen=True, slots=True)
class LocalLosses:
    """Makes them: heads called `name` with as many `scores` as the model has, for answers of shape
    `rows` = (samples,) or (samples, tokens)."""

    name: str
    scores: int
    rows: tuple[int, ...]
    seed: int
    device: torch.device

    @staticmethod
    def of(
        spec: TrainSpec, scores: int | None, data: DataSet, device: torch.device
    ) -> "LocalLosses | None":
        """Those that `spec` asks for, of a model whose output ends with so many `scores`; None
        where its schedule has none. Raises `InvalidInput` where the model or the answers in `data`
        are not such that a head could give them."""
        if not schedule(spec.plan.schedule).local:
            return None
        length = max(spec.data.buckets) if data.train.lengths is not None else None
        answers = data.first(spec.plan.microbatch, length)[1]
        return LocalLosses.judging(answers, scores, spec.local_head, spec.seed, device)

    @staticmethod
    def judging(
        answers: Samples, scores: int | None, name: str, seed: int, device: torch.device
    ) -> "LocalLosses":
        """Those with heads called `name`, "" = the one that suits `answers`. Raises likewise."""
        target = target_of(answers)
        values = isinstance(target, Tensor) and target.is_floating_point()
        allowed = (2,) if values else (1, 2)
        if scores is None or not isinstance(target, Tensor) or target.dim() not in allowed:
            raise InvalidInput(
                "stages learn from losses of their own where the model gives one tensor, and the "
                "answers are a class of each sample or token, or a row of numbers of each sample; "
                "this model or its data are others",
                "Use a schedule without local losses, such as '1f1b-flush'.",
            )
        if name == SIMILARITY and (values or target.dim() > 1):
            raise InvalidInput(
                "similarity matching compares samples of a class, and the answers in these data "
                "are no classes of whole samples",
                f"Use the local head {LINEAR!r} or {LOW_RANK!r}.",
            )
        of_tokens = target.dim() == 2 and not values
        usual = LOW_RANK if of_tokens else LINEAR
        rows = tuple(target.shape[: 1 + of_tokens])
        return LocalLosses(name or usual, scores, rows, seed, device)

    def made(self, stage: int, specs: Sequence[TensorSpec], of_model: Loss) -> LocalLoss:
        """That of stage number `stage`, which hands on a bundle of these specs; alike on every
        rank. Raises `InvalidInput` where no head can read it."""
        features = Features.of(specs, self.rows)
        read = [specs[place] for place in features.places]
        size = HeadSize(
            features.width(specs),
            self.scores,
            torch.float64 if read[0].dtype is torch.float64 else torch.float32,
            derived(self.seed, HEAD_SEED, stage),
            tuple(spec.shape for spec in read),
        )
        return LocalLoss(HEADS[self.name](features, size).to(self.device), of_model)
