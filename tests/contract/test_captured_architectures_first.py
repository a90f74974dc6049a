"""Contract: Architectures of transformers train in two stages as in one, and as in a plain loop."""

import pytest

from tests.contract.captures.lists import ARCHITECTURE_NAMES
from tests.contract.captures.training import Suite, carried_through

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all models
NAMES = ARCHITECTURE_NAMES[::2]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return carried_through(tmp_path_factory.mktemp("captured"), NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_two_stages_are_one_and_near_to_a_plain_loop(name: str, suite: Suite) -> None:
    suite.check(name)
