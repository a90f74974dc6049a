"""A process that starts others and takes all of them with it, those too that they leave behind:
orphans come to it, and it ends when its standard input does, as when pytest is killed. The folder
that it is given goes last.

Reads a JSON list a line, a file for the output and a command, and prints the process's id."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import psutil

PR_SET_CHILD_SUBREAPER = 36


def keep() -> None:
    for line in sys.stdin:
        out, *command = json.loads(line)
        with open(out, "ab") as file:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        print(started.pid, flush=True)


def take_all() -> None:
    """Again until none is left: who is killed leaves children, which come to this process."""
    with suppress(ChildProcessError):
        while True:
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            os.wait()


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        keep()
    finally:
        take_all()
        shutil.rmtree(sys.argv[1], ignore_errors=True)
