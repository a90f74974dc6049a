"""Submit jobs for the runs that wait for a pool: `python -m workers.pool_agent local`."""

import argparse
import logging
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec

from backend.bootstrap import Backend, connect
from backend.errors import InvalidInput, StageflowError
from backend.runs.pools.job import WARNING
from backend.settings import Settings, load_settings
from backend.storage.errors import DatabaseUnreachable
from workers.devices import devices, gpus
from workers.pools.engine import Engine
from workers.pools.handed_down import handed_down, rules
from workers.pools.kubernetes.settings import KubernetesSettings
from workers.pools.local import LocalEngine
from workers.pools.slurm.engine import SlurmEngine
from workers.pools.submitter import Submitter
from workers.stop import Flag

AGENT = (sys.executable, "-m", "workers.run_agent")
IN_A_POD = ("python", "-m", "workers.run_agent", "--grace", f"{WARNING - 5:g}")
"""A pod is told by SIGTERM, and has the warning until it is killed."""

log = logging.getLogger("stageflow")


@dataclass(frozen=True, slots=True)
class PoolKind:
    """A kind of cluster: what it is asked for on the command line, its engine, and what carries a
    run on one of its machines."""

    options: Callable[[argparse.ArgumentParser], None]
    engine: Callable[[argparse.Namespace, Settings], Engine]
    command: Sequence[str] = AGENT


def _local_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--machines", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.0, help="seconds that a job may take")


def _local(given: argparse.Namespace, settings: Settings) -> Engine:
    found = gpus()
    folder = settings.shared_folder / "pools" / given.name
    environment = handed_down(settings, folder / "secrets")
    each = devices(found, settings.devices)
    names = [gpu.uuid for gpu in found]
    return LocalEngine(folder / "jobs", given.machines, each, environment, given.longest, names)


def _slurm_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--partition", required=True)
    parser.add_argument("--sbatch", default="", help="more options, as the site wants them")


def _slurm(given: argparse.Namespace, settings: Settings) -> Engine:
    folder = settings.shared_folder / "pools" / given.name  # the machines must reach it
    environment = handed_down(settings, folder / "secrets")
    return SlurmEngine(given.partition, folder / "jobs", environment, shlex.split(given.sbatch))


def _kubernetes_options(parser: argparse.ArgumentParser) -> None:
    for name in ("namespace", "image", "secret", "claim", "device", "cpu", "memory"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--queue", default="")
    parser.add_argument("--priority", default="")
    parser.add_argument("--context", default="")
    parser.add_argument("--user", type=int, required=True)


def _kubernetes(given: argparse.Namespace, settings: Settings) -> Engine:
    if find_spec("kubernetes") is None:
        raise InvalidInput(
            "the Kubernetes client is not installed",
            "Install it where the pool is: pip install 'stageflow[kubernetes]'",
        )
    from workers.pools.kubernetes.api import connected
    from workers.pools.kubernetes.engine import KubernetesEngine

    asked = {f.name: getattr(given, f.name) for f in fields(KubernetesSettings) if f.name in given}
    here = KubernetesSettings(pool=given.name, variables=rules(settings), **asked)
    return KubernetesEngine(here, connected(given.context))


KINDS = {
    "local": PoolKind(_local_options, _local),
    "slurm": PoolKind(_slurm_options, _slurm),
    "kubernetes": PoolKind(_kubernetes_options, _kubernetes, IN_A_POD),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Until SIGTERM or Ctrl-C, which leave all jobs alone; 1 where it cannot begin."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    given = _arguments(arguments)
    over = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    try:
        settings = load_settings()
        backend = connect(settings)
        kind = KINDS[given.kind]
        engine = kind.engine(given, settings)
        submitter = Submitter(backend, engine, given.name, given.kind, kind.command)
        backend.pools.go_by(given.name)
    except StageflowError as fault:
        print(f"{fault}\n{fault.advice}", file=sys.stderr)
        return 1
    try:
        rounds(submitter, backend, given.seconds, over)
    finally:
        backend.pools.leave(given.name)
        backend.close()
    return 0


def rounds(submitter: Submitter, backend: Backend, seconds: float, over: Flag) -> None:
    """One about every so many seconds. Who has no node agent has nobody else to give up the runs
    of jobs that were lost."""
    while not over.is_set():
        try:
            submitter.turn()
            backend.dispatch.expire()
        except DatabaseUnreachable as fault:
            log.warning("%s", fault)
        except StageflowError as fault:
            log.warning("%s %s", fault, fault.advice)
        except Exception:
            log.exception("a round was left")
        over.wait(seconds)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name, kind in KINDS.items():
        one = kinds.add_parser(name)
        one.add_argument("--name", default=name, help="of the pool")
        one.add_argument("--seconds", type=float, default=5.0, help="between two rounds")
        kind.options(one)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
