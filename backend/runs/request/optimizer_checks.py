"""Which update rules there cannot be: read as a person writes them, refused with the reason."""

from dataclasses import replace
from math import isfinite

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.planning.optimizers import optimizer_named
from backend.runs.request.groups import check_group
from backend.runs.request.optimizer_spec import OptimizerSpec


def with_betas(optimizer: OptimizerSpec, text: str) -> OptimizerSpec:
    """With those of "0.9, 0.95"; the usual ones of an empty text. Raises `InvalidInput`."""
    if not text.strip():
        return replace(optimizer, betas=None)
    try:
        first, second = map(float, text.split(","))
    except ValueError:
        raise InvalidInput(f"betas of {text!r} are not two numbers", "Try 0.9, 0.95.") from None
    chosen = replace(optimizer, betas=(first, second))
    check_constants(chosen)
    return chosen


def with_eps(optimizer: OptimizerSpec, text: str) -> OptimizerSpec:
    """With that of "1e-8"; the usual one of an empty text. Raises `InvalidInput`."""
    try:
        chosen = replace(optimizer, eps=float(text) if text.strip() else None)
    except ValueError:
        raise InvalidInput(f"eps of {text!r} is no number", "Try 1e-8.") from None
    check_constants(chosen)
    return chosen


def check_optimizer(optimizer: OptimizerSpec) -> None:
    """All of it that depends on nothing else. Raises `InvalidInput`."""
    if not (isfinite(optimizer.learning_rate) and optimizer.learning_rate > 0):
        raise InvalidInput(f"learning rate {optimizer.learning_rate:g} is not above 0", "Try 0.01.")
    if not 0 <= optimizer.momentum < 1:
        raise InvalidInput(f"momentum {optimizer.momentum:g} is not in 0 up to 1", "Try 0.9.")
    if not (isfinite(optimizer.weight_decay) and optimizer.weight_decay >= 0):
        raise InvalidInput(f"weight decay {optimizer.weight_decay:g} is below 0", "Try 0.0001.")
    if not (optimizer.decay_epochs > 0 and 0 < optimizer.decay_factor <= 1):
        raise InvalidInput(
            f"a decay by {optimizer.decay_factor:g} every {optimizer.decay_epochs:g} epochs",
            "Use a factor above 0 and at most 1, and more than 0 epochs.",
        )
    if not 0 <= optimizer.ema < 1:
        raise InvalidInput(
            f"averaged weights of which {optimizer.ema:g} stay at each update",
            "Use a share below 1, such as 0.999, or 0 for no average.",
        )
    check_constants(optimizer)
    for group in optimizer.groups:
        check_group(group)


def check_constants(optimizer: OptimizerSpec) -> None:
    """Betas and eps, which some rules have and others have not. Raises `InvalidInput`."""
    kind, betas, eps = optimizer_named(optimizer.name), optimizer.betas, optimizer.eps
    if betas is not None and (kind.betas is None or not all(0 <= beta < 1 for beta in betas)):
        raise InvalidInput(
            f"{kind.title} with betas {betas[0]:g} and {betas[1]:g}",
            "Adam, AdamW and Lion have two betas, in 0 up to 1.",
        )
    if eps is not None and (kind.eps is None or not (isfinite(eps) and eps > 0)):
        raise InvalidInput(f"{kind.title} with eps {eps:g}", "Adam and AdamW have one, above 0.")


def check_warm_up(optimizer: OptimizerSpec, epochs: int, updates: int) -> None:
    """Raises `InvalidInput`, also where the rate still rises when so many epochs, or updates
    (0 = any), are over."""
    if not (isfinite(optimizer.warm_up) and optimizer.warm_up >= 0):
        raise InvalidInput(f"a warm-up of {optimizer.warm_up:g} epochs is below 0", "Try 1.")
    if optimizer.warm_up_updates < 0 or (optimizer.warm_up_updates and optimizer.warm_up):
        raise InvalidInput(
            f"a warm-up of {optimizer.warm_up_updates} updates and {optimizer.warm_up:g} epochs",
            "Give one of them.",
        )
    rises = ""
    if optimizer.warm_up > epochs:
        rises = f"{optimizer.warm_up:g} epochs of {epochs}"
    elif 0 < updates < optimizer.warm_up_updates:
        rises = f"{optimizer.warm_up_updates} updates of {updates}"
    if rises:
        raise InvalidInput(
            f"the learning rate would never be reached: it rises for {rises}",
            "Warm up for less, or train for longer.",
        )


def check_clipping(optimizer: OptimizerSpec, schedule_name: str) -> None:
    """Raises `InvalidInput` where there is no such norm."""
    most = optimizer.clip_norm
    if most is None and optimizer.clip_by == "stage":
        raise InvalidInput(
            "gradients are to be clipped by each stage's own norm, and no largest norm is given",
            "Give one, such as 1, or leave out by which norm they are clipped.",
        )
    if most is None:
        return
    if not (isfinite(most) and most > 0):
        raise InvalidInput(f"gradients cannot be clipped to a norm of {most:g}", "Try 1.")
    if optimizer.clip_by == "model" and not schedule(schedule_name).flushes:
        raise InvalidInput(
            f"schedule {schedule_name!r} never flushes, so the gradients of all stages are "
            "never known at the same time, nor is their norm",
            "Clip by each stage's own norm, use a schedule that flushes, such as '1f1b-flush', or "
            "no clipping.",
        )
