"""How a process that has read much ends, and how seldom it looks for garbage meanwhile.

A program that imports much begins with `gc.disable()` and goes on with `keep_imports()`: nearly all
that an import makes stays, and looking through it again and again takes a tenth of a start.
"""

import atexit
import gc


def end_quickly() -> None:
    """Let the interpreter end without looking through every object once more: a command takes
    0.2 s less, a process that has imported torch 0.5 s. Other handlers at exit run as ever."""
    atexit.register(gc.freeze)


def keep_imports() -> None:
    """Look for garbage from now on, among what will be made."""
    gc.freeze()
    gc.enable()


def seldom_collect() -> None:
    """Look for objects that only point at each other after half a million new ones: of a search
    nearly all objects stay, and looking through them takes a twentieth of it; through those of a
    command's imports alone, 100,000, it takes 0.03 s."""
    gc.set_threshold(500_000, 50, 50)
