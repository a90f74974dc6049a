"""First weights from safetensors: one file, or a folder with Hugging Face's shards."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from workers.definitions.errors import DefinitionFailed
from workers.definitions.weight_files import Stored, opened, stored_in

MOST_NAMES = 3
"""Names that a sentence lists; of the others it says how many there are."""


@dataclass(frozen=True, slots=True)
class FirstWeights:
    """Weights to begin with: those at `path` (`weight_files.stored_in`). Where `partial`, tensors
    that are not there, or have another shape, keep what the model made itself."""

    path: Path
    partial: bool = False

    def check(self, model: nn.Module) -> tuple[str, ...]:
        """What a reader should know; nothing of the tensors is read. Raises `DefinitionFailed`
        naming what is missing, unknown or of another size."""
        return self._match(model)[1]

    def load(self, model: nn.Module) -> tuple[str, ...]:
        """As `check`, and puts the tensors into `model`, as far as its own have values. A tied
        weight may stand under any of its names. One tensor of the files is held at a time."""
        stored, notes = self._match(model)
        targets = model.state_dict(keep_vars=True)
        wanted = {n: s for n, s in stored.items() if not isinstance(targets[n], FakeTensor)}
        with torch.no_grad():
            for file in sorted({each.file for each in wanted.values()}):
                with opened(file), safe_open(file, framework="pt") as source:
                    for name, each in wanted.items():
                        if each.file == file:
                            targets[name].copy_(source.get_tensor(each.name))
        return notes

    def _match(self, model: nn.Module) -> tuple[dict[str, Stored], tuple[str, ...]]:
        """What is taken, by the model's names, and the notes."""
        wanted = model.state_dict(keep_vars=True)
        found, notes = _renamed(stored_in(self.path), wanted)
        known = {name: each for name, each in found.items() if name in wanted}
        odd = [name for name, each in known.items() if each.shape != tuple(wanted[name].shape)]
        given = {id(wanted[name]) for name in known}
        differences = {
            "lacks": [name for name, tensor in wanted.items() if id(tensor) not in given],
            "has unknown": [name for name in found if name not in wanted],
            "has other sizes of": [
                f"{name} ({_text(found[name].shape)} for {_text(wanted[name].shape)})"
                for name in odd
            ],
        }
        taken = {name: each for name, each in known.items() if name not in odd}
        told = [f"{what} {_some(names)}" for what, names in differences.items() if names]
        if self.partial:
            return taken, self._partial(taken, found, told, notes)
        if told:
            raise DefinitionFailed(
                f"{self.path.name} {told[0]}",
                "Give weights that were saved from this model, or allow partial ones: the rest "
                "then begins as the model makes it.",
            )
        return taken, notes

    def _partial(
        self,
        taken: Mapping[str, Stored],
        found: Mapping[str, Stored],
        told: list[str],
        notes: tuple[str, ...],
    ) -> tuple[str, ...]:
        """The notes where not everything is taken."""
        if not taken:
            raise DefinitionFailed(
                f"{self.path.name} has none of the model's tensors; it has {_some([*found])}",
                "Give weights of this model, or of its base.",
            )
        rest = "what is not taken from it begins as the model makes it"
        return (*notes, *(f"{self.path.name} {each}: {rest}" for each in told))


def _renamed(
    found: Mapping[str, Stored], wanted: Mapping[str, Tensor]
) -> tuple[dict[str, Stored], tuple[str, ...]]:
    """Under the model's names, where those of the files are of one of its parts (a base model), or
    the model is the part of what was saved. Files that share a name with the model stay."""
    if not found or any(name in wanted for name in found):
        return dict(found), ()
    part = _best(_prefixes(wanted, found))
    if part:
        told = f"the names in the weights are those of the model's part {part}"
        return {f"{part}.{name}": each for name, each in found.items()}, (told,)
    part = _best(_prefixes(found, wanted))
    if part:
        inner = {n.removeprefix(f"{part}."): s for n, s in found.items()}
        return inner, (f"the weights are of a larger model, whose part {part} is taken",)
    return dict(found), ()


def _prefixes(long: Mapping[str, object], short: Mapping[str, object]) -> dict[str, int]:
    """How many of the short names each part of the long ones has."""
    counts: dict[str, int] = {}
    for name in long:
        words = name.split(".")
        for cut in range(1, len(words)):
            if ".".join(words[cut:]) in short:
                prefix = ".".join(words[:cut])
                counts[prefix] = counts.get(prefix, 0) + 1
    return counts


def _best(counts: Mapping[str, int]) -> str:
    """The one that has the most; "" where there is none or several are alike."""
    most = max(counts.values(), default=0)
    names = [name for name, count in counts.items() if count == most]
    return names[0] if len(names) == 1 else ""


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a number"
