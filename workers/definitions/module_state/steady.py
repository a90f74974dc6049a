"""Whether a forward that is traced once stands for every forward, whatever its model keeps."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import nn

from workers.definitions.module_state.hidden import are_tensors, hide
from workers.definitions.module_state.module_state import Difference, ModuleState
from workers.definitions.module_state.twin import twin
from workers.definitions.module_state.writers import written_at

MOST_NAMES = 3

Made = TypeVar("Made")


class StateChanges(ValueError):
    """A forward may read what forwards change, where its trace does not see it."""

    def __init__(self, model: nn.Module, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        names = names_of([each.path for each in differences])
        place, line = written_at(model, differences)
        code = f" ({line})" if line else ""
        what = f"changes {names}, which no trace sees{code}; let register_buffer keep it"
        if all(each.is_random for each in differences):
            what = f"draws from {names}, which no trace sees{code}; "
            what += "draw by torch's own random operations"
        super().__init__(f"{place}: its forward {what}" if place else f"its forward {what}")


def names_of(names: Sequence[str]) -> str:
    """The first of them, and how many others there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def traced_steadily(
    model: nn.Module,
    trace: Callable[[nn.Module], Made],
    is_equal: Callable[[Made, Made], bool],
    sees_buffers: bool = False,
) -> tuple[Made, Made]:
    """What `trace` makes of copies of `model` in training and in evaluation mode.

    Raises `StateChanges` where that may not hold for all forwards to come. A trace runs the
    forward's Python once. If training changes state 0 into state 1, and from there does the same
    again and leaves it, then so do all trainings that follow; evaluation must do in state 1 what it
    does in state 0, and leave it. Random numbers that were drawn meanwhile are others next time.
    The values of tensors in attributes may differ where no forward reads those of an earlier one.
    Buffers do not count where the trace itself `sees_buffers` change.
    """

    learning, evaluating = twin(model).train(), twin(model).eval()
    changed: list[Difference] = []
    made: list[Made] = []
    for copied in (learning, evaluating):
        before = ModuleState.of(copied)
        made.append(trace(copied))
        changed += unseen(before, copied, sees_buffers)
    if not changed:
        return made[0], made[1]
    before = ModuleState.of(learning)
    try:
        again = trace(learning), trace(learning.eval())
    except Exception as error:  # what is left of the first trace cannot be read by another
        raise StateChanges(model, [*dict.fromkeys(changed)]) from error
    left = unseen(before, learning.train(), sees_buffers)
    is_steady = all(map(is_equal, made, again)) and not any(each.is_random for each in changed)
    if is_steady and left and are_tensors(left):
        left = [] if _are_unread(learning, left, trace, made, is_equal) else left
    if left or not is_steady:
        raise StateChanges(model, [*dict.fromkeys((*changed, *left))])
    return made[0], made[1]


def _are_unread(
    model: nn.Module,
    tensors: Sequence[Difference],
    trace: Callable[[nn.Module], Made],
    made: Sequence[Made],
    is_equal: Callable[[Made, Made], bool],
) -> bool:
    """Whether both modes are traced alike where nothing can read these tensors."""
    for training, expected in zip((True, False), made, strict=True):
        hide(model.train(training), tensors)
        try:
            if not is_equal(expected, trace(model)):
                return False
        except Exception:  # the user's code read one of them
            return False
    return True


def unseen(before: ModuleState, model: nn.Module, sees_buffers: bool) -> list[Difference]:
    """What differs by now. Where a trace sees buffers, it sees torch's random operations too."""
    found = before.differences(ModuleState.of(model))
    return [
        each
        for each in found
        if not (sees_buffers and (each.is_buffer or each.holder is torch.default_generator))
    ]
