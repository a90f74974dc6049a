"""What heads of local losses cost is in a profile: sizes as they are counted, times above zero."""

from pathlib import Path

import pytest

from backend.profiles.layer import Layer
from backend.runs.request.local_heads import LINEAR, LOW_RANK, SIMILARITY
from backend.runs.request.spec import ProfileSpec
from workers.profiler import local_head_costs
from workers.profiler.main import profiled
from workers.runtime.compute.local_heads.low_rank import RANK
from workers.runtime.reports.reporter import Reporter

SAMPLES, CLASSES = 8, 3
CHAIN = """
def model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5), nn.Linear(5, 3)
    )
def example(batch):
    return torch.rand(batch, 1, 6, 6), torch.randint(3, (batch,))
def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""


def layers_of(file: Path) -> tuple[Layer, ...]:
    return profiled("heads", file, ProfileSpec(1, SAMPLES, 2), Reporter(0)).layers


def test_each_cut_has_the_heads_that_can_read_what_crosses_it(write, monkeypatch) -> None:
    monkeypatch.setattr(local_head_costs, "MOST_OPERATIONS", 1e9)  # the model is tiny
    *inner, last = layers_of(write(CHAIN))
    assert last.local_heads == ()
    assert {tuple(head.name for head in each.local_heads) for each in inner} == {
        (LINEAR, SIMILARITY, LOW_RANK)
    }
    for each, width in zip(inner, (144, 144, 144, 5), strict=True):
        linear, similar, low = each.local_heads
        assert linear.parameter_bytes == 4 * (width * CLASSES + CLASSES)
        assert linear.flops == 2 * SAMPLES * width * CLASSES
        assert low.parameter_bytes == 4 * (RANK * (width + CLASSES) + CLASSES)
        maps = 4 * 4 * 9 if each.name in ("0", "1") else width * width
        assert similar.parameter_bytes == linear.parameter_bytes + 4 * maps
        for head in each.local_heads:
            assert min(head.seconds, head.update, head.adding, head.out_of_place_update) > 0
            assert head.work_bytes > SAMPLES * CLASSES * 4


def test_of_heads_that_nobody_asked_for_none_takes_long(write, monkeypatch) -> None:
    monkeypatch.setattr(local_head_costs, "MOST_OPERATIONS", 0.0)
    assert {len(each.local_heads) for each in layers_of(write(CHAIN))[:-1]} == {1}


def test_without_room_there_are_none(write, monkeypatch) -> None:
    monkeypatch.setattr(local_head_costs, "free", lambda device: 0)
    assert {each.local_heads for each in layers_of(write(CHAIN))} == {()}


def test_tokens_have_the_heads_of_tokens(write) -> None:
    file = write(
        """
        def model():
            return nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 6), nn.Linear(6, 7))
        def example(batch):
            return torch.randint(7, (batch, 4)), torch.randint(7, (batch, 4))
        def loss(output, target):
            return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
        """
    )
    *inner, _ = layers_of(file)
    assert [[head.name for head in each.local_heads] for each in inner] == [[LOW_RANK, LINEAR]] * 2


@pytest.mark.parametrize(("answers", "widths"), [("(batch,)", (5, 1)), ("(batch, 4)", (5, 8))])
def test_what_no_head_could_judge_has_none(write, answers: str, widths: tuple[int, int]) -> None:
    """Answers of another form, and a loss that raises on scores of one dimension."""
    file = write(
        f"""
        class Shaped(nn.Module):
            def forward(self, x):
                return x.view(-1) if x.shape[1] == 1 else x.view(-1, 4, 2)
        def model():
            return nn.Sequential(nn.Linear(4, {widths[0]}), nn.Linear(*{widths}), Shaped())
        def example(batch):
            return torch.rand(batch, 4), torch.rand({answers})
        def loss(output, target):
            return nn.functional.mse_loss(output if output.dim() == 1 else output[:, :, 0], target)
        """
    )
    assert {each.local_heads for each in layers_of(file)} == {()}
