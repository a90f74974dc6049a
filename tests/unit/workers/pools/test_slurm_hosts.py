"""Names of machines that Slurm shortened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from workers.pools.slurm.hosts import hosts


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-10,12]", ("n08", "n09", "n10", "n12")),
        ("login,n[1,3],m-2", ("login", "n1", "n3", "m-2")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2].lab", ("n1.lab", "n2.lab")),
    ],
)
def test_written_out(text: str, names: tuple[str, ...]) -> None:
    assert hosts(text) == names


@pytest.mark.parametrize("text", ["n[1-2", "n1]", "n[]", "n[a]", "n[1-]", "a,,b", "a,"])
def test_what_is_no_list_of_names(text: str) -> None:
    with pytest.raises(InvalidInput):
        hosts(text)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=20), st.integers(1, 6))
def test_numbers_come_back_in_their_width(numbers: list[int], width: int) -> None:
    names = [f"n{number:0{width}}" for number in numbers]
    assert hosts(f"n[{','.join(name[1:] for name in names)}]") == tuple(names)
