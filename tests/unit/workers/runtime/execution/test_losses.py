"""What an epoch says: every loss to the charts, a line per evaluation and per epoch to people."""

import pytest

from backend.pipeline.shape import Shape
from workers.runtime.execution.losses import Losses
from workers.runtime.reports.reporter import Reporter


@pytest.mark.parametrize("is_reporter", [True, False])
def test_the_log_has_a_line_per_evaluation_and_epoch(
    capsys: pytest.CaptureFixture[str], is_reporter: bool
) -> None:
    losses = Losses(Reporter(0), is_reporter, Shape((1,), 8, batch=2), epoch=2, epochs=10)
    for microbatch, loss in enumerate((4.0, 2.0)):
        losses.add(2 * microbatch + 1, loss, {})
    losses.evaluated(8, {"accuracy": 0.75, "held-out loss": 0.51234567})
    losses.end(2.0, 5000, 8)
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("{")]
    assert (
        said
        == [
            "epoch 3 of 10: evaluated after 12 minibatches: accuracy 0.75, held-out loss 0.5123",
            "epoch 3 of 10: mean loss 3, 2 s, 2,500.0 samples/s",
        ]
        * is_reporter
    )
