"""How a metric may be named."""

import re

METRIC_NAME = re.compile(r"[A-Za-z0-9][\w .:@%+-]{0,39}")
METRIC_NAMES = "up to 40 letters, digits, spaces or ._:@%+-"
