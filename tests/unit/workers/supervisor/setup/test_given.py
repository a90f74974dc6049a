"""What ranks have of their node, by the devices that they hold."""

import os
from collections.abc import Sequence

import pytest

from backend.cores import usable_cores
from workers.supervisor.ranks.place import Place
from workers.supervisor.setup.given import cores_for, gpus_for, share_of, sharing

MANY = 100_000


def place(*devices: int) -> Place:
    held = tuple(sorted(set(devices)))
    return Place(tuple(range(len(devices))), devices, 2950, held=held)


def names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


@pytest.mark.parametrize(
    ("devices", "gpus", "used"),
    [((0,), 0, 0), ((0, 1), 2, 2), ((5, 2), 8, 8), ((0, 1, 0), 2, 0), ((0, 2), 2, 0)],
)
def test_every_rank_has_a_gpu_or_none_has(devices: tuple[int, ...], gpus: int, used: int):
    assert gpus_for(place(*devices), names(gpus)) == names(used)


@pytest.mark.parametrize(
    ("devices", "gpus", "words"),
    [
        ((0,), 0, []),
        (tuple(range(1000)), 1000, []),
        ((0,) * MANY, 0, ["CPU core"]),
        ((0,) * MANY, 1, ["one rank per GPU", "CPU core"]),
    ],
)
def test_short_devices_are_said(devices: tuple[int, ...], gpus: int, words: Sequence[str]):
    warnings = sharing(place(*devices), names(gpus))
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


def test_ranks_are_bound_to_the_cores_that_their_run_holds():
    cores = sorted(os.sched_getaffinity(0))
    assert cores_for(place(0), ()) == cores[:1]
    assert cores_for(place(*range(len(cores))), ()) == cores
    assert cores_for(place(len(cores)), ()) == cores[:1]  # a node may claim more than it has
    assert cores_for(place(0), names(2)) == ()


def test_the_shares_of_a_node_add_up_to_it():
    assert share_of((0, 3), names(8)) == 0.25
    assert sum(share_of((device,), ()) for device in range(usable_cores())) == pytest.approx(1)
    assert share_of(range(MANY), ()) == 1
