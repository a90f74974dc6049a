"""What a person asks for: profile this definition, or train it by this plan."""

from dataclasses import dataclass, field
from typing import Literal

from backend.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Which data set: "digits" (scikit-learn's handwritten digits), "synthetic", or
    "definition" (the definition's own `data()`); empty = the definition's default.
    `samples` is the size of the synthetic training set."""

    name: str = ""
    samples: int = 1024


@dataclass(frozen=True, slots=True)
class OptimizerSpec:
    """Plain SGD, SGD with momentum, or Adam ("sgd" | "momentum" | "adam")."""

    name: Literal["sgd", "momentum", "adam"] = "momentum"
    learning_rate: float = 0.01
    momentum: float = 0.9


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """Time every layer of a definition at `microbatch` samples; medians over `repetitions`."""

    definition_id: int
    microbatch: int = 16
    repetitions: int = 20
    kind: Literal["profile"] = "profile"


@dataclass(frozen=True, slots=True)
class TrainSpec:
    """Train a definition by a plan until `target_accuracy` or `epochs`, whichever is first."""

    definition_id: int
    plan: Plan
    plan_id: int | None = None
    data: DataSpec = field(default_factory=DataSpec)
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    epochs: int = 10
    target_accuracy: float | None = None
    seed: int = 0
    kind: Literal["train"] = "train"


RunSpec = ProfileSpec | TrainSpec
