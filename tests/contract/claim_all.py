"""A node agent of its own process, as far as claiming goes: `claim_all.py NODE FIRST LAST`.

Claims the runs FIRST..LAST in an order of its own, each twice, and prints what it got.
"""

import random
import sys

from backend.bootstrap import connect


def main(node: str, first: int, last: int) -> None:
    backend = connect()
    ids = [*range(first, last + 1)] * 2
    random.Random(node).shuffle(ids)
    for run_id in ids:
        attempt = backend.dispatch.claim(run_id, node)
        if attempt is not None:
            attempt.logs([(None, 0.0, node)])
            print(run_id, attempt.number, flush=True)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
