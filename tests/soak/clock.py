"""A wall clock that is off, for one process: `clock_shim.c`, preloaded into it."""

import subprocess
from pathlib import Path

from backend.queue.embedded import EmbeddedRedis
from backend.settings import Settings

SHIM = Path(__file__).with_name("clock_shim.c")


def off_by(folder: Path, clock: Path) -> dict[str, str]:
    """The variables of a process whose clock is off by the seconds that the file `clock` says; the
    shim is built in `folder`."""
    shim = folder / "clock_shim.so"
    if not shim.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(SHIM), "-ldl"], check=True)
    if not clock.exists():
        clock.write_text("0")
    return {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(clock)}


class ShiftedRedis(EmbeddedRedis):
    """Its clock can be set, forward and back."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._home = settings.home

    def set_clock(self, seconds: int) -> None:
        """Ahead of the machine's by so much (negative: behind), within a second."""
        self._clock.write_text(str(seconds))

    @property
    def _clock(self) -> Path:
        return self._home / "clock-redis"

    def _command(self) -> list[str]:
        variables = off_by(self._home, self._clock).items()
        return ["env", *(f"{name}={value}" for name, value in variables), *super()._command()]
