"""A run that works, a fork bomb, everything that hostile uploads try, and at both levels the calls
that no rank needs, by whoever starts this: prints how they ended."""

import sys
from pathlib import Path

from backend.bootstrap import connect
from backend.settings import Settings
from backend.storage.schema import upgrade
from tests.integration.sandbox.conftest import LIMITS, Lab, failure
from tests.integration.sandbox.test_calls import not_as_it_must
from tests.integration.sandbox.test_hostile_uploads import everything_tried, harm
from tests.integration.sandbox.test_hunger import BOMB
from tests.integration.sandbox.test_levels import WORKS
from workers.sandbox.sandbox import detect

settings = Settings(home=Path(sys.argv[1]), node="tester", max_processes=64, max_seconds=60)
upgrade(settings)
lab = Lab(connect(settings), detect(settings))
run = lab.works(WORKS)
print(lab.sandbox.reason)
print(run.sandbox, run.state)
print(failure(lab.works(BOMB))[0])
with everything_tried(Path(sys.argv[1]) / "hostile") as tried:
    print("harm", harm(tried))
for level in (lab.sandbox, LIMITS):
    print(level.level, not_as_it_must(Lab(lab.backend, level)))
