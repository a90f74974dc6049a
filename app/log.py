"""What the dashboard logs. Tracebacks have no values of variables: passwords are among them."""

from typing import Any

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback

structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.set_exc_info,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        ConsoleRenderer(exception_formatter=plain_traceback),
    ]
)


def logger(name: str) -> Any:
    """structlog's, for the part of the product of this name."""
    return structlog.get_logger(name)
