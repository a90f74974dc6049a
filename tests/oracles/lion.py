"""Lion as its paper writes it: Chen et al., NeurIPS 2023, algorithm 2."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class PlainLion(torch.optim.Optimizer):
    """`lr` is the paper's eta, `weight_decay` its lambda."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for theta in group["params"]:
                if theta.grad is not None:
                    self._step(theta, theta.grad, group)

    def _step(self, theta: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        beta_1, beta_2 = group["betas"]
        state = self.state[theta]
        m = state.get("exp_avg", torch.zeros_like(theta))
        c = beta_1 * m + (1 - beta_1) * g
        change = torch.tensor([(x > 0) - (x < 0) for x in c.flatten().tolist()]).view(c.shape)
        theta -= group["lr"] * (change.to(theta) + group["weight_decay"] * theta)
        state["exp_avg"] = beta_2 * m + (1 - beta_2) * g
