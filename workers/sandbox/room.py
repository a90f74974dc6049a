"""The folder of an attempt: what in it is the agent's, and what the ranks may see of it."""

import os
from dataclasses import dataclass
from pathlib import Path

WORK = "work"
HOSTS = "127.0.0.1 localhost stageflow\n::1 localhost\n"
NAMES = "hosts: files\n"


def work_folder(folder: Path) -> Path:
    """The one folder of an attempt in which its ranks may write; also their HOME."""
    return folder / WORK


@dataclass(frozen=True, slots=True)
class Room:
    """`folder` belongs to the agent. Of the `state` directory around it the ranks see
    `shown`, read-only, and `work`, of what hosts have `shared` nothing. `data` (and weights) lie
    elsewhere on the machine and are shown read-only as they are: their owner and their permissions
    stay."""

    folder: Path
    state: Path
    shown: tuple[Path, ...] = ()
    data: tuple[Path, ...] = ()
    shared: Path | None = None

    @property
    def hidden(self) -> tuple[Path, ...]:
        """What is masked, wherever it lies."""
        return tuple(dict.fromkeys((self.state, self.shared or self.state)))

    @property
    def work(self) -> Path:
        return work_folder(self.folder)

    @property
    def etc(self) -> Path:
        """Small files of /etc that differ from the machine's."""
        return self.folder / "etc"

    def furnish(self, user: int | None) -> None:
        """Write them, and give `user` (None: the agent's own) what it may see. The folder
        of the attempt exists. Raises `OSError`."""
        self.work.mkdir(mode=0o700, exist_ok=True)
        self.etc.mkdir(exist_ok=True)
        owner = os.getuid() if user is None else user
        account = f"stageflow:x:{owner}:{owner}::{self.work}:/bin/false\n"
        texts = {"hosts": HOSTS, "nsswitch.conf": NAMES, "passwd": account}
        for name, text in {**texts, "group": f"stageflow:x:{owner}:\n"}.items():
            (self.etc / name).write_text(text)
            (self.etc / name).chmod(0o644)
        if user is not None:
            for top in (self.work, *self.shown):
                for path in (top, *top.rglob("*")):
                    os.chown(path, user, user, follow_symlinks=False)
            os.chown(self.work, user, 0)
            self.work.chmod(0o710)  # the launcher, root without power, has to enter it
