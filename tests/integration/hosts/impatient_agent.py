"""A node agent that waits for lost nodes for seconds, not for a minute: `python -m` this."""

import sys

from backend.services.runs import survival
from workers.agent import main

WAIT = 3.0

if __name__ == "__main__":
    survival.WAIT = WAIT
    sys.exit(main())
