"""The dashboard and the planning commands on a machine that has no torch."""

import subprocess
import sys
from pathlib import Path

BLOCKED = """
import sys
sys.modules.update({"torch": None, "safetensors": None, "sklearn": None})
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_dashboard_and_commands_import_without_torch() -> None:
    done = run("import app.cli, app.asgi, app.queries.planner")
    assert done.returncode == 0, done.stderr


def test_planning_works_without_torch() -> None:
    done = run(
        "sys.argv = 'stageflow simulate --positions 2 --microbatches 4'.split()\n"
        "sys.argv += '--forward 1 --backward 2'.split()\n"
        "from app.cli import main; main()"
    )
    assert done.returncode == 0, done.stderr
    assert "bubble_rate" in done.stdout


def test_planning_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    """Alembic, Celery and Redis take as long to import as the rest of a short command."""
    done = run(
        f"import os; os.environ['STAGEFLOW_HOME'] = {str(tmp_path)!r}\n"
        "from backend.settings import load_settings\n"
        "from backend.storage import schema\n"
        "schema.upgrade(load_settings())\n"
        "for name in [name for name in sys.modules if name.startswith('alembic')]:\n"
        "    del sys.modules[name]\n"
        "sys.modules.update({'alembic': None, 'celery': None, 'kombu': None, 'redis': None})\n"
        "sys.argv = 'stageflow plans list'.split()\n"
        "from app.cli import main; main()"
    )
    assert done.returncode == 0, done.stderr


def test_no_module_of_app_or_backend_reaches_torch() -> None:
    """Not even through others: the whole of both packages, imported."""
    done = run(
        "import importlib, pkgutil, app, backend\n"
        "for package in (app, backend):\n"
        "    for m in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not m.name.startswith(('app.views', 'app.main')):\n"
        "            importlib.import_module(m.name)\n"
    )
    assert done.returncode == 0, done.stderr


def test_without_torch_no_agent_starts_and_the_way_to_one_is_said(tmp_path: Path) -> None:
    done = run(
        f"import os; os.environ['STAGEFLOW_HOME'] = {str(tmp_path)!r}\n"
        "from app.cli import main\n"
        "from backend.settings import load_settings\n"
        "from backend.storage import schema\n"
        "schema.upgrade(load_settings())\n"
        "sys.argv = ['stageflow', 'worker']; main()"
    )
    assert done.returncode == 1
    assert "stageflow[worker]" in done.stderr
