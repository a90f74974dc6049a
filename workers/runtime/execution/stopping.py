"""Whether a training goes on after an evaluation: all its ranks say the same."""

import time
from collections.abc import Callable, Mapping

from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from backend.runs.request.stopping import why_ended
from workers.runtime.messages.world import World


class Stopping:
    """Of one run; `say` tells people why it ends."""

    def __init__(self, spec: TrainSpec, job: Job, world: World, say: Callable[[str], None]) -> None:
        self._spec, self._world, self._say = spec, world, say
        self._values = list(job.watched)
        self._started = job.started or time.time()
        self._is_missing = False

    def ends(self, score: Mapping[str, float], updates: int) -> bool:
        """Does the training end after so many weight updates of the run, with this score of the
        held-out samples? Every rank calls it."""
        stop = self._spec.stop
        if stop.metric in score:
            self._values.append(score[stop.metric])
        elif stop.patience and score and not self._is_missing:
            self._is_missing = True
            self._say(
                f"Patience watches {stop.metric!r}, which this evaluation has not told: there are "
                f"{', '.join(sorted(score))}."
            )
        seconds = time.time() - self._started
        why = self._world.told(why_ended(stop, self._values, updates, seconds))
        if why:
            self._say(f"The training ends: {why}.")
        return bool(why) or self._spec.is_met(score)
