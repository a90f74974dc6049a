"""Whether a training goes on after an evaluation: all its ranks say the same."""

import time
from collections.abc import Callable, Mapping

from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from backend.runs.request.stopping import evaluations_since_best, is_larger_better, why_ended
from workers.runtime.messages.world import World


class Stopping:
    """Of one run; `say` tells people why it ends."""

    def __init__(self, spec: TrainSpec, job: Job, world: World, say: Callable[[str], None]) -> None:
        self._spec, self._world, self._say = spec, world, say
        self._values = list(job.watched)
        self._started = job.started or time.time()
        self._is_missing = False
        self.is_best = False

    def ends(self, score: Mapping[str, float], updates: int) -> bool:
        """Does the training end after so many weight updates of the run, with this score of the
        held-out samples? `is_best` says then whether the score is the best so far. Every rank
        calls it."""
        stop, best = self._spec.stop, False
        if stop.metric in score:
            self._values.append(score[stop.metric])
            best = evaluations_since_best(self._values, bool(is_larger_better(stop))) == 0
        elif self._is_watching and score and not self._is_missing:
            self._is_missing = True
            self._say(
                f"{stop.metric!r} is watched, which this evaluation has not told: there are "
                f"{', '.join(sorted(score))}."
            )
        seconds = time.time() - self._started
        found = why_ended(stop, self._values, updates, seconds), best
        why, self.is_best = self._world.told(found)
        if why:
            self._say(f"The training ends: {why}.")
        return bool(why) or self._spec.is_met(score)

    @property
    def _is_watching(self) -> bool:
        return self._spec.stop.patience > 0 or self._spec.checkpoints.best
