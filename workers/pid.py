"""Processes that can be recognised later, by another process as well."""

from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Pid:
    """A process by its number and its start (Unix seconds), since numbers are used again."""

    number: int
    start: float

    @property
    def is_alive(self) -> bool:
        try:
            process = psutil.Process(self.number)
            same = abs(process.create_time() - self.start) < 0.5
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    @staticmethod
    def of(number: int) -> "Pid":
        """The process that has this number now; start 0 where it is gone already."""
        try:
            return Pid(number, psutil.Process(number).create_time())
        except psutil.Error:
            return Pid(number, 0.0)
