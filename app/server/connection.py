"""One Backend for the pages and the API of this process, made when it is first needed."""

from functools import lru_cache
from threading import Lock

from backend.bootstrap import Backend, connect
from backend.settings import Settings, load_settings

_lock = Lock()


def connected() -> Backend:
    """Raises what `connect` raises, and tries again at the next request."""
    settings = load_settings()
    with _lock:
        return _connected(settings)


@lru_cache(maxsize=4)
def _connected(settings: Settings) -> Backend:
    return connect(settings)
