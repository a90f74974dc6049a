"""Torch's own optimizers, schedulers and averaged model, as the sequential reference uses them."""

import math
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import get_inverse_sqrt_schedule

from tests.contract.runtime_cases import EPOCHS, GROUPS, HEADS, Case
from tests.oracles.lion import PlainLion

RULES = {
    "sgd": torch.optim.SGD,
    "momentum": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adafactor": torch.optim.Adafactor,
    "lion": PlainLion,
}


def optimizer_of(case: Case, named: Mapping[str, nn.Parameter]) -> torch.optim.Optimizer:
    """Of the weights of a stage; `full` is the rate of a group before any factor."""
    parameters = named or {"": nn.Parameter(torch.zeros(1).double())}  # a stage without weights
    more = {"momentum": 0.9} if case.optimizer == "momentum" else {}
    groups = []
    for name, weight in parameters.items():
        rate, decay = case.rate, case.asked.get("weight_decay", 0.0)
        if case.extra == "groups" and name.endswith(".bias"):
            rate, decay = rate * GROUPS[0].rate, GROUPS[0].weight_decay
        elif case.extra == "groups":
            rate = rate * GROUPS[1].rate if name[:1] in HEADS[1:-2] else rate
            decay = 0.0 if weight.dim() < 2 else decay
        groups.append({"params": [weight], "lr": rate, "full": rate, "weight_decay": decay})
    return RULES[case.optimizer](groups, **more)


class Averaged:
    """Torch's own moving average of these weights."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self._names = list(weights)
        self._model = AveragedModel(_module(weights), multi_avg_fn=get_ema_multi_avg_fn(decay))

    def follow(self, weights: Mapping[str, Tensor]) -> None:
        self._model.update_parameters(_module(weights))

    def named(self) -> dict[str, Tensor]:
        return dict(zip(self._names, (p.detach() for p in self._model.parameters()), strict=True))


def _module(weights: Mapping[str, Tensor]) -> nn.Module:
    return nn.ParameterList([nn.Parameter(weight.detach().clone()) for weight in weights.values()])


def averaged_model(case: Case, weights: Mapping[str, Tensor]) -> Averaged | None:
    """Where the case asks for one; a stage without weights has none."""
    return Averaged(weights, case.asked["ema"]) if "ema" in case.asked and weights else None


def rate_factor(case: Case, total: int, at: int) -> float:
    """Of a stage's update `at` of `total`."""
    match case.extra:
        case "rates":  # half an epoch of warm-up, then a cosine to the end
            warm = total / EPOCHS / 2
            if at < warm:
                return min(1.0, (at + 1) / warm)
            return (1 + math.cos(math.pi * (at - warm) / (total - warm))) / 2
        case "one cycle":
            return _one_cycle(total)[at]
        case "root":
            return get_inverse_sqrt_schedule(_any(), 3).lr_lambdas[0](at)
    return 1.0


@cache
def _one_cycle(total: int) -> list[float]:
    optimizer, found = _any(), []
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total, cycle_momentum=False)
    for _ in range(total - 1):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return [*found, optimizer.param_groups[0]["lr"]]


def _any() -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], 1.0)
