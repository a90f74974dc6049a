"""What a definition's loss logs, and what its metrics say of held-out samples."""

import math
import re
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.definitions.errors import DefinitionFailed
from workers.definitions.loader import load
from workers.definitions.metrics import Log, merged, ratios, sums_of

LABELS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


def f1(pairs):
    """As a definition gives it: a pair, and for comparison the share of matches as a mean."""
    hits = sum(p and t for p, t in pairs)
    return {
        "f1": (2 * hits, sum(p for p, _ in pairs) + sum(t for _, t in pairs)),
        "match": sum(p == t for p, t in pairs) / len(pairs),
    }


@given(LABELS, st.integers(1, 10))
def test_a_metric_does_not_depend_on_the_microbatches(pairs, size: int) -> None:
    cuts = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    found = ratios(merged(sums_of(f1(cut), len(cut)) for cut in cuts))
    total, count = f1(pairs)["f1"]
    assert found.get("f1") == (total / count if count else None)
    matches = sum(p == t for p, t in pairs)
    assert found["match"] == pytest.approx(float(Fraction(matches, len(pairs))), rel=1e-12)


def test_tensors_of_one_number_are_numbers() -> None:
    found = sums_of({"a": torch.tensor(2.0), "b": (torch.tensor([3]), 4)}, 5)
    assert found == {"a": (10.0, 5), "b": (3.0, 4.0)}


def test_what_is_not_finite_is_left_out() -> None:
    assert ratios({"a": (math.nan, 1), "b": (math.inf, 1), "c": (1.0, 0), "d": (1, 2)}) == {
        "d": 0.5
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (0.5, "metrics() returned a float, not a dict"),
        ({"loss": 1.0}, "a metric cannot be named 'loss'"),
        ({"": 1.0}, "a metric cannot be named ''"),
        ({"a\nb": 1.0}, "a metric cannot be named"),
        ({"a" * 41: 1.0}, "a metric cannot be named"),
        ({"a": "high"}, "metric 'a' is a <class 'str'>, not a number"),
        ({"a": torch.zeros(3)}, "metric 'a' is a tensor of (3,), not a number"),
        ({"a": (1, 2, 3)}, "metric 'a' has 3 parts, not a sum and a count"),
        ({f"m{n}": 1 for n in range(33)}, "more than 32 metrics"),
    ],
)
def test_what_is_no_metric_is_refused(found, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        sums_of(found, 4)


def test_a_log_gives_the_last_values_once() -> None:
    log = Log()
    log("kl", 1.0)
    log("kl", torch.tensor(2.0, requires_grad=True))
    assert log.taken() == {"kl": 2.0}
    assert log.taken() == {}


MODEL = "from torch import nn\ndef model(): return nn.Linear(1, 1)\n"


def test_a_loss_that_logs_is_given_what_logs(tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODEL + "def loss(o, t, log):\n    log('error', (o - t).abs().mean())\n")
    definition = load(file)
    definition.loss(torch.tensor([3.0]), torch.tensor([1.0]))
    assert definition.log.taken() == {"error": 2.0}


def test_a_file_without_any_logs_nothing(tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODEL)
    definition = load(file)
    assert definition.log is None
    assert definition.metrics is None


def test_metrics_must_be_a_function(tmp_path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODEL + "metrics = {'f1': 0.5}\n")
    with pytest.raises(DefinitionFailed, match=r"metrics is a dict, not a function"):
        load(file)
