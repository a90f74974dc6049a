"""Where a plan's cuts lie between the modules of the model, as other trainers name them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.prediction.trainers.handover import Handover
from backend.profiles.layer import Layer

IN_BLOCKS = (
    "Move the cut to the start of a module, or profile with blocks as layers and plan again."
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A module that a trainer places as a whole: a numbered block, or a module of the top level.
    `stage` holds all of it."""

    path: str
    stage: int

    @property
    def number(self) -> int | None:
        """Its place in the list of blocks; None where it is not in one."""
        last = self.path.rpartition(".")[2]
        return int(last) if last.isdigit() else None

    @property
    def owner(self) -> str:
        """The list of blocks that it is in."""
        return self.path.rpartition(".")[0]


def is_module(layer: Layer) -> bool:
    """Whether the layer is called by a module's path, and not after a function: kinds of modules
    are classes, which have capital letters."""
    return layer.kind[:1].isupper()


def split_points(plan: Handover) -> Iterator[tuple[str, bool]]:
    """Per cut the path of a module, and whether the cut lies before it (else behind it). Raises
    `InvalidInput` where a cut lies between two functions, or at a module that is called twice."""
    last = ""
    for number, stage in enumerate(plan.stages[1:], 1):
        before, behind = plan.stages[number - 1][-1], stage[0]
        if _is_called_once(plan, behind):
            last = behind.name
            yield last, True
        elif before.name == last:
            raise InvalidInput(
                f"there is a cut both before and behind {last}, and torch takes one of them",
                IN_BLOCKS,
            )
        elif _is_called_once(plan, before):
            yield before.name, False
        else:
            raise InvalidInput(
                f"stage {number} begins between {before.name} and {behind.name}, neither of which "
                "is a module that is called once",
                IN_BLOCKS,
            )


def _is_called_once(plan: Handover, layer: Layer) -> bool:
    """Layers of one module that is called again have its path with a number: relu, relu_2."""
    if not is_module(layer) or layer.name in _around(plan):
        return False
    name, _, last = layer.name.rpartition("_")
    others = {each.name for stage in plan.stages for each in stage if is_module(each)}
    is_again = last.isdigit() and name in others
    return not is_again and f"{layer.name}_2" not in others


def units(plan: Handover) -> tuple[Unit, ...]:
    """The modules in running order. Raises `InvalidInput` where a cut goes through one."""
    found: dict[str, Unit] = {}
    around = _around(plan)
    for number, stage in enumerate(plan.stages):
        for layer in stage:
            path = _unit_path(layer, around)
            if path is None:
                continue
            if found.setdefault(path, Unit(path, number)).stage != number:
                raise InvalidInput(
                    f"the cut before stage {number} goes through {path}, which is placed as a "
                    "whole there",
                    IN_BLOCKS,
                )
    return tuple(found.values())


def loose_functions(plan: Handover) -> tuple[str, ...]:
    """Layers that are functions of a forward around other modules, in no module of their own."""
    around = _around(plan)
    layers = (layer for stage in plan.stages for layer in stage)
    return tuple(layer.name for layer in layers if _unit_path(layer, around) is None)


def _around(plan: Handover) -> frozenset[str]:
    """Paths of modules in which others lie: a layer of such a path is what its own forward does
    between them, and to place the path would place all of them."""
    names = (layer.name.split(".") for stage in plan.stages for layer in stage if is_module(layer))
    return frozenset(".".join(parts[:end]) for parts in names for end in range(1, len(parts)))


def _unit_path(layer: Layer, around: frozenset[str]) -> str | None:
    parts = layer.name.split(".")
    numbered = next((place for place, part in enumerate(parts) if part.isdigit()), None)
    if numbered is not None:
        return ".".join(parts[: numbered + 1])
    path = layer.name if is_module(layer) else ".".join(parts[:-1])
    return path if path and path not in around else None


def listed(paths: Sequence[str]) -> str:
    """At most a few of them, for a sentence."""
    return ", ".join(paths[:6]) + (", ..." if len(paths) > 6 else "")
