"""Modules of a model: every layer once, in order, whatever the names."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from app.charts.model.module_tree import LEGIBLE, Module, around, first_open, module_tree

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
