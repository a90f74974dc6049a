"""What is done before the first visitor."""

import subprocess
import sys

from app import components
from app.server.prefetch import modules


def test_every_component_is_named_once() -> None:
    found = modules(components)
    assert "app.components.runs.run_table" in found
    assert len(found) == len(set(found))


def test_a_broken_database_does_not_keep_the_server_from_starting() -> None:
    """In a process of its own: what is imported stays. A folder that cannot be is no database."""
    code = (
        "import os, sys; os.environ['STAGEFLOW_HOME'] = '/dev/null/none'; "
        "from app import charts, components; from app.server.prefetch import prefetch; "
        "prefetch(components, charts); import gc; "
        "print('pandas' in sys.modules and gc.get_freeze_count() > len(gc.get_objects()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
