"""A measurement of this machine's cores that cannot be made says why."""

import sys

import pytest

from app.commands import clusters
from backend.errors import InvalidInput


def test_a_measurement_that_ends_early_says_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('first\\nno room')"]
    monkeypatch.setattr(clusters, "agent_command", lambda module: failing)
    with pytest.raises(InvalidInput, match="measuring ended with code 1: no room"):
        clusters.measured_record()
