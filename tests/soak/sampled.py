"""A dashboard that says at its end where its time went.

Looks at the threads that run pages' scripts a hundred times a second, and counts in which function
of ours, or of a library that ours called, each is.
"""

import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from app import asgi
from backend.settings import load_settings

ROOT = str(Path(__file__).parents[2])
SECONDS = 0.01
MOST = 25
ours: Counter[str] = Counter()
inner: Counter[str] = Counter()


def look() -> None:
    while True:
        time.sleep(SECONDS)
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for number, frame in sys._current_frames().items():
            if names.get(number, "").startswith("ScriptRunner"):
                count(frame)


def count(frame: FrameType | None) -> None:
    first = True
    while frame is not None:
        code = frame.f_code
        if first:
            inner[f"{code.co_filename.rpartition('site-packages/')[2]}:{code.co_name}"] += 1
            first = False
        if code.co_filename.startswith(ROOT) and ".venv" not in code.co_filename:
            ours[f"{code.co_filename.removeprefix(ROOT)}:{code.co_name}"] += 1
            return
        frame = frame.f_back


def tell() -> None:
    for title, counted in (("in whose name", ours), ("where", inner)):
        total = max(1, counted.total())
        for name, number in counted.most_common(MOST):
            print(f"{title:14} {100 * number / total:5.1f} %  {name}", file=sys.stderr)


if __name__ == "__main__":
    threading.Thread(target=look, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # the server raises it again at its end
    try:
        asgi.serve(load_settings())
    finally:
        tell()
