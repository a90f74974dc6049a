"""A student and the slow average of it that it learns from."""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.head = nn.Linear(4, 4)

    def forward(self, one: Tensor, other: Tensor):
        with torch.no_grad():
            wanted = self.teacher(other)
        return self.head(self.student(one)), wanted


def model() -> nn.Module:
    return Student()


def example(n: int):
    return (torch.randn(n, 6), torch.randn(n, 6)), torch.zeros(n)


def loss(output, target):
    return functional.mse_loss(*output)
