"""A node agent that waits for lost nodes for seconds, not for a minute: `python -m` this."""

import sys

from backend.services.runs import survival
from workers.agent import main

if __name__ == "__main__":
    survival.WAIT = 3.0
    sys.exit(main())
