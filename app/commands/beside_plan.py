"""A run beside what its plan says, as rows of `stageflow show`."""

from app import formats
from app.differences import other_links_words, pace_words
from app.naming import shared_words
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.cores import MUCH
from backend.runs.run import Run


def expected_rows(run: Run, found: Expectation) -> list[tuple[str, str]]:
    """What was predicted, and what others took of the cores where that is much."""
    measured, pairs = run.summary.seconds_per_minibatch, []
    for name, prediction in (("predicted", found.prediction), ("at that share", found.at_share)):
        if prediction is not None and measured is not None:
            wanted = prediction.seconds_per_minibatch
            said = f"{formats.seconds(wanted)} per minibatch"
            pairs.append((name, f"{said} (measured {formats.change(measured, wanted)})"))
    if found.cores is not None and found.cores.is_said:
        pairs.insert(1, ("cores were shared", shared_words(found.cores)))
    if found.other_links is not None:
        pairs.append(("other links", other_links_words(found.other_links)))
    if found.profile_taken and found.profile_taken >= MUCH:
        said = f"others had {formats.percent(found.profile_taken, 0)} of the profiler's core"
        pairs.append((f"profile {found.profile_id}", said))
    return pairs


def pace_rows(run: Run, profile_id: int | None, found: Paces | None) -> list[tuple[str, str]]:
    """Ranks that compute longer than planned, and how to plan with the speeds that they have."""
    if found is None or not (said := pace_words(run, found)):
        return []
    again = f"stageflow plan --profile {profile_id} --cluster run:{run.id}"
    return [("slow", said), ("with measured speeds", again)]
