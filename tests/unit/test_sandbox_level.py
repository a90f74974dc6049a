"""Which sandbox is strong enough for which minimum."""

import pytest

from backend.sandbox_level import SandboxLevel


@pytest.mark.parametrize("level", SandboxLevel)
def test_every_level_reaches_itself_and_the_strongest_reaches_all(level: SandboxLevel):
    assert level.reaches(level)
    assert SandboxLevel.BUBBLEWRAP.reaches(level)
    assert level.reaches(SandboxLevel.NONE)


def test_a_weaker_level_does_not_reach_a_stronger_one():
    assert not SandboxLevel.LIMITS.reaches(SandboxLevel.BUBBLEWRAP)
    assert not SandboxLevel.NONE.reaches(SandboxLevel.LIMITS)
