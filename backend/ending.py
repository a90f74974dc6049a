"""How a process ends that has read much and holds nothing which needs its own end."""

import atexit
import gc


def end_quickly() -> None:
    """Let the interpreter end without looking through every object once more: a command takes
    0.2 s less, a process that has imported torch 0.5 s. Other handlers at exit run as ever."""
    atexit.register(gc.freeze)
