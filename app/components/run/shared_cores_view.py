"""That others used a run's cores, said before it is said how far the prediction was off."""

from contextlib import suppress

import streamlit as st

from app import services
from app.components.profile.profile_again import profile_again
from app.formats import change, percent, seconds, sentence
from app.naming import shared_words
from backend.comparison.shared_cores import Expectation
from backend.cores import MUCH
from backend.errors import StageflowError
from backend.runs.run import Run


def shared_cores_view(run: Run, found: Expectation) -> None:
    """Nothing where the ranks, and the profiler before them, had their cores to themselves."""
    profiled = found.profile_taken or 0.0
    is_shared = found.cores is not None and found.cores.is_said
    if not is_shared and profiled < MUCH:
        return
    said = []
    if found.cores is not None and is_shared:
        said += [f"**Cores were shared: {percent(found.cores.taken, 0)}.**"]
        said += [sentence(f"{shared_words(found.cores)}.")]
    if found.at_share is not None:
        said += ["Measured is compared with the prediction at the share that the ranks had."]
        if found.prediction is not None and run.summary.seconds_per_minibatch:
            measured = run.summary.seconds_per_minibatch
            alone = found.prediction.seconds_per_minibatch
            said += [
                f"On cores of their own a minibatch was predicted to take {seconds(alone)}; it "
                f"took {seconds(measured)} ({change(measured, alone)})."
            ]
    if profiled >= MUCH:
        said += [f"While the profile was measured, others had {percent(profiled, 0)} of its core."]
    st.warning(" ".join(said), icon=":material/group:")
    if found.profile_id is not None and not (found.cores and found.cores.emulated):
        with suppress(StageflowError):
            profile_again(services.backend().profiles.get(found.profile_id))
