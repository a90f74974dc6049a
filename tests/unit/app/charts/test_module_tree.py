"""Modules of a model: every layer once, in order, whatever the names."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from app.charts.model.module_tree import LEGIBLE, Module, around, first_open, module_tree
from backend.profiles.folds import Fold, folded
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph

NAMES = st.lists(
    st.lists(st.sampled_from("abc0"), min_size=1, max_size=4).map(".".join),
    max_size=30,
    unique=True,
)
GPT = ["wte", "drop"]
GPT += [f"h.{i}.{part}" for i in range(12) for part in ("ln_1", "attn.qkv", "attn.proj", "mlp")]
GPT += ["ln_f", "lm_head"]


def leaves(module: Module) -> Iterator[int]:
    for member in module.members:
        if isinstance(member, Module):
            yield from leaves(member)
        else:
            yield member


@given(NAMES)
def test_every_layer_is_there_once_and_in_order(names: list[str]) -> None:
    root = module_tree(names)
    assert list(leaves(root)) == list(range(len(names)))
    found = list(root.modules())
    assert len({module.key for module in found}) == len(found)
    for module in found[1:]:
        assert list(leaves(module)) == list(range(module.first, module.stop))
        assert all(_is_under(names[i], module.path) for i in leaves(module))


def _is_under(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}.")


def test_a_transformer_is_seen_as_its_blocks() -> None:
    root = module_tree(GPT)
    (blocks,) = [m for m in root.members if isinstance(m, Module)]
    assert [m.path for m in blocks.members if isinstance(m, Module)] == [
        f"h.{i}" for i in range(12)
    ]
    assert first_open(root) == {blocks.key}
    assert 5 + len(blocks.members) <= LEGIBLE


def test_a_layer_is_found_through_its_modules() -> None:
    root = module_tree(GPT)
    assert around(root, GPT.index("h.3.attn.proj")) == {"h:2", "h.3:14", "h.3.attn:15"}
    assert around(root, 0) == frozenset()


@given(NAMES)
def test_nothing_is_open_in_what_is_closed(names: list[str]) -> None:
    root = module_tree(names)
    opened = first_open(root)
    assert opened == _seen(root, opened)


def _seen(module: Module, opened: frozenset[str]) -> frozenset[str]:
    """The open modules that are reached through open ones alone."""
    inside = [m for m in module.members if isinstance(m, Module) and m.key in opened]
    return frozenset(m.key for m in inside).union(*(_seen(m, opened) for m in inside))


def _folded(names: list[str], kinds: list[str]) -> tuple[Module, list[Fold]]:
    layers = zip(names, kinds, strict=True)
    graph = ModelGraph.chain(tuple(Layer(name, kind, 1.0, 2.0, 8, 8) for name, kind in layers))
    found = [item for item in folded(graph) if isinstance(item, Fold)]
    return module_tree(names, found), found


@given(
    st.lists(st.lists(st.sampled_from(["q", "k.a", "k.b"]), min_size=1, unique=True), max_size=6),
    st.integers(0, 6),
)
def test_with_folds_every_layer_is_there_once_under_keys_of_its_own(
    blocks: list[list[str]], row: int
) -> None:
    names = [f"net.h.{b}.{part}" for b, parts in enumerate(blocks) for part in parts]
    names += [f"net.h.{b}" for b in range(len(blocks), len(blocks) + 2)]
    names += [f"node{i}" for i in range(row)]
    root, _ = _folded(names, [name.rsplit(".", 1)[-1].strip("0123456789") for name in names])
    assert list(leaves(root)) == list(range(len(names)))
    found = list(root.modules())
    assert len({module.key for module in found}) == len(found)
    for module in found:
        assert list(leaves(module)) == list(range(module.first, module.stop))
        if module.blocks:
            assert len(module.members) == module.blocks


def test_equal_blocks_are_one_closed_module() -> None:
    kinds = [name.rsplit(".", 1)[-1] for name in GPT]
    root, (fold,) = _folded(GPT, kinds)
    (blocks,) = [m for m in root.members if isinstance(m, Module)]
    assert (blocks.blocks, blocks.path) == (fold.count, "h") == (12, "h")
    assert first_open(root) == frozenset()
    assert around(root, GPT.index("h.3.attn.proj")) == {"h:2", "h.3:14", "h.3.attn:15"}


def test_equal_blocks_among_others_are_a_module_between_them() -> None:
    names = [f"h.{b}.{part}" for b in range(5) for part in ("a", "b")]
    kinds = ["stem", "b", *["a", "b"] * 4]
    root, (fold,) = _folded(names, kinds)
    (h,) = [m for m in root.members if isinstance(m, Module)]
    inner = [m for m in h.members if isinstance(m, Module)]
    assert [(m.path, m.blocks, len(m.members)) for m in inner] == [
        ("h.0", 0, 2),
        ("h.1 to 4", 4, 4),
    ]
    assert fold.name == "h.1 to 4"


def test_a_blocks_own_operations_belong_to_it() -> None:
    parts = ("h.{}.norm", "h.{}", "h.{}.mlp", "h.{}_2")
    names = [part.format(b) for b in range(4) for part in parts]
    root, _ = _folded(names, ["norm", "add", "mlp", "add"] * 4)
    (h,) = [m for m in root.members if isinstance(m, Module)]
    assert (h.path, h.blocks) == ("h", 4)
    assert [(m.path, len(m.members)) for m in h.members if isinstance(m, Module)] == [
        (f"h.{b}", len(parts)) for b in range(4)
    ]
