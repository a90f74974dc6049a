"""The rows of docs/evidence/captures.md, as the tests find them."""

import ast
from pathlib import Path

import torch

from backend.profiles.profile import Profile
from tests.contract.captures.configs import ARCHITECTURES
from workers.definitions.loader import load
from workers.definitions.prepare import prepare

FILES = Path(__file__).parent / "files"
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "captures.md"
REWRITE = "the page is stale: python -m tests.contract.captures.page"
HOW = {
    "symbolic": "stand-ins",
    "captured": "operations",
    "partly": "stand-ins, parts whole",
    "submodules": "submodules whole",
}
TOLD = ("is kept whole", "are kept whole", "traced away")


def row(name: str, profile: Profile) -> str:
    """Of a model that is cut: how it was found, and which parts stay whole."""
    notes = " ".join(note for note in profile.notes if any(part in note for part in TOLD))
    how = next(how for how in HOW if how == (profile.tracing or _how(profile)))
    return f"| {name} | {about(name)} | {HOW[how]} | {notes} |"


def _how(profile: Profile) -> str:
    """Where ranks must make the whole model, the profile does not say."""
    is_kept = any("is kept whole" in note for note in profile.notes)
    return "partly" if is_kept else "symbolic"


def about(name: str) -> str:
    """What the file says it is, or the class of transformers."""
    if name in ARCHITECTURES:
        classes = ARCHITECTURES[name]["architectures"]
        assert isinstance(classes, list)
        return f"`{classes[0]}`"
    return str(ast.get_docstring(ast.parse((FILES / f"{name}.py").read_text())))


def uncut_row(name: str, file: Path) -> str:
    """Of a model that is one layer."""
    definition = load(file, {"length": 8} if file.suffix == ".json" else {})
    torch.manual_seed(0)
    found = prepare(definition, definition.example(4))
    assert len(found.layers) == 1
    notes = [note for note in found.notes if "cannot be cut" in note or "kept whole" in note]
    return f"| {name} | {' '.join(notes)} |"
