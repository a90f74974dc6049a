"""What pipelines of the reference exchange after their updates: the papers' formulas, with torch's
own optimizer as DiLoCo's outer one."""

import torch
from torch import Tensor

Weights = dict[str, Tensor]


class Between:
    """All pipelines of a case. `centre` is what they have in common."""

    def __init__(self, case, centre: Weights) -> None:
        self.case, self.centre = case, centre
        self.updates = [0] * case.num_stages
        self.outer, self.held = {}, []
        if case.sites and case.sites.rule == "gaia":
            zeros = {name: torch.zeros_like(weight) for name, weight in centre.items()}
            self.held = [dict(zeros) for _ in range(case.num_pipelines)]
        if case.sites and case.sites.rule == "diloco":
            for name, weight in centre.items():
                self.outer[name] = torch.optim.SGD(
                    [torch.nn.Parameter(weight)],
                    case.sites.rate,
                    case.sites.momentum,
                    nesterov=case.sites.momentum > 0,
                )

    def exchange(self, pipelines) -> None:
        """Those stages that have made an update since the last call."""
        for stage, before in enumerate(self.updates):
            if pipelines[0].updates[stage] == before:
                continue
            self.updates[stage] += 1
            if self.held:
                self._significant(pipelines, stage)
            for name in () if self.held else pipelines[0].parameters[stage]:
                self._exchange(pipelines, name, self.updates[stage])
            for pipeline in pipelines:
                pipeline.versions[stage][-1] = pipeline.copy(stage)

    def _exchange(self, pipelines, name: str, update: int) -> None:
        own = [pipeline.averaged(name) for pipeline in pipelines]
        found = self._outer(own, name, update) if self.outer else self._elastic(own, name)
        for pipeline, weight in zip(pipelines, found, strict=True):
            pipeline.parameter(name).data.copy_(weight)

    def _elastic(self, own: list[Tensor], name: str) -> list[Tensor]:
        """Elastic averaging with alpha = 1 / pipelines."""
        away = [(weight - self.centre[name]) / len(own) for weight in own]
        self.centre[name] = self.centre[name] + sum(away[1:], away[0])
        return [weight - distance for weight, distance in zip(own, away, strict=True)]

    def _outer(self, own: list[Tensor], name: str, update: int) -> list[Tensor]:
        """DiLoCo: the outer optimizer's gradient is the mean of the ways."""
        if update % self.case.sites.every:
            return own
        (parameter,) = self.outer[name].param_groups[0]["params"]
        ways = [parameter.detach() - weight for weight in own]
        parameter.grad = sum(ways[1:], ways[0]) / len(ways)
        self.outer[name].step()
        self.centre[name] = parameter.detach().clone()
        return [self.centre[name]] * len(own)

    def _significant(self, pipelines, stage: int) -> None:
        """Gaia: each site's own, then what all send."""
        names, sent = list(pipelines[0].parameters[stage]), []
        bound = self.case.sites.threshold / self.updates[stage] ** 0.5
        for pipeline, held in zip(pipelines, self.held, strict=True):
            for name in names:
                moved = pipeline.averaged(name) - self.centre[name] - held[name]
                held[name] = held[name] + moved / len(pipelines)
            masks = {n: held[n].abs() > bound * (self.centre[n] + held[n]).abs() for n in names}
            numbers = sum(mask.numel() for mask in masks.values())
            size = held[names[0]].element_size()
            if sum(int(mask.sum()) for mask in masks.values()) * (4 + size) >= numbers * size:
                masks = {name: torch.ones_like(mask) for name, mask in masks.items()}
            sent.append({name: held[name] * masks[name] for name in names})
            for name in names:
                held[name] = held[name] * ~masks[name]
        for name in names:
            for each in sent:
                self.centre[name] = self.centre[name] + each[name]
            for pipeline, held in zip(pipelines, self.held, strict=True):
                pipeline.parameter(name).data.copy_(self.centre[name] + held[name])

    def evaluated(self, pipelines) -> Weights:
        """What is saved."""
        if self.held:
            return {name: pipelines[0].parameter(name) for name in self.centre}
        return self.centre
