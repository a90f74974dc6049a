"""What is added to a partition that a planner or a person has found, where a question leaves it
open."""

from backend.planning.work import SearchWork
from backend.prediction.channel_splits import with_splits
from backend.prediction.chosen_codecs import with_codecs
from backend.prediction.chosen_sums import with_sums
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.run_ahead import ahead


def completed(
    question: Question, found: Prediction, work: SearchWork, deeper: bool = True
) -> Prediction:
    """The plan that was `found` with codecs, split layers and, where it may become `deeper`, as far
    ahead as is faster. What is asked of `work` is counted."""
    coded = with_sums(question, with_codecs(question, found, work), work)
    return with_splits(question, ahead(question, coded, work) if deeper else coded)
