"""The script of a job: it starts an agent on each machine, and says where the secrets lie."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from backend.errors import InvalidInput
from backend.runs.pools.job import JobOrder
from backend.setting_files import PREFIX, SECRETS
from backend.settings import Settings

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DEVICES = f"{PREFIX}DEVICES"
"""Of each machine: without GPUs, an agent would take every core that it sees for one."""
PROGRAMS = "/usr/local/bin:/usr/bin:/bin"
SRUN = "srun --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=600"
"""Agents end by themselves, and one that fails ends no other: the leader decides. Those that hang
follow the first after ten minutes, in which a leader has saved what there is."""
CORES = (
    'test -z "$SLURM_CPUS_PER_TASK" || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK',
    "export SLURM_CPU_BIND=none",
)
"""Steps do not inherit the job's cores since 22.05, and would be bound to one each."""


def checked(environment: Mapping[str, str]) -> dict[str, str]:
    """What a job is told by variables, which the cluster keeps in the clear: no field that may
    hold a secret. The folder of the secrets must be closed to others. Raises `InvalidInput`."""
    hidden = {PREFIX + name.upper() for name, of in Settings.model_fields.items() if not of.repr}
    for name in environment:
        if not VARIABLE.fullmatch(name):
            raise InvalidInput(f"{name!r} is not the name of an environment variable")
        if name.upper() in hidden:
            raise InvalidInput(
                f"{name} may hold a secret, and a cluster keeps what a job is told in the clear",
                f"Put it into a file {name.lower()} of the folder that {SECRETS} names.",
            )
    secrets = Path(environment.get(SECRETS, ""))
    if SECRETS in environment and (not secrets.is_dir() or secrets.stat().st_mode & 0o077):
        raise InvalidInput(
            f"{secrets} is not a folder that only its owner can read",
            f"mkdir -p {secrets} && chmod 700 {secrets}",
        )
    return dict(environment)


def script(order: JobOrder, environment: Mapping[str, str], programs: str) -> str:
    """Of a job without the submitter's environment. `programs`: folder of Slurm's commands."""
    own = {"SLURM_EXPORT_ENV": "ALL", "PATH": f"{programs}:{PROGRAMS}", DEVICES: order.devices}
    variables = {**own, **environment}
    lines = (f"export {name}={shlex.quote(str(value))}" for name, value in variables.items())
    return "\n".join(
        ["#!/bin/bash", *lines, *CORES, f"exec {SRUN} {shlex.join(order.command)}", ""]
    )
