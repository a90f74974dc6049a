"""Weights as Hugging Face shards them."""

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from workers.definitions.weight_files import INDEX


def sharded(folder: Path, tensors: Mapping[str, Tensor]) -> Path:
    """The tensors in two files of `folder`, which is made, with their index."""
    folder.mkdir(parents=True)
    names = list(tensors)
    parts = names[: len(names) // 2], names[len(names) // 2 :]
    places: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        (folder / file).chmod(0o644)  # the library keeps it to the owner, and ranks are others
        places |= dict.fromkeys(part, file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder
