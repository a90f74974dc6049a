"""The history of use: means per step, the finest resolution that reaches back, never too many."""

from hypothesis import given
from hypothesis import strategies as st

from backend.runs.use import RESOLUTIONS, Use, UseHistory, UsePoint, joined, largest, mean, thinned


def sample(time: float, *shares: float | None) -> UsePoint:
    return UsePoint(time, tuple(Use(f"gpu {n}", share) for n, share in enumerate(shares)))


def test_a_point_is_the_mean_of_its_step() -> None:
    history = UseHistory()
    assert [history.add(sample(t, share)) for t, share in ((100.0, 0.2), (104.9, 0.6))] == [[], []]
    assert history.add(sample(105.0, 0.7)) == [(0, sample(100.0, 0.4))]
    assert history.add(sample(120.0, 0.1)) == [(0, sample(105.0, 0.7)), (1, sample(100.0, 0.5))]


def test_what_is_not_known_counts_for_nothing() -> None:
    group = [sample(1.0, 0.2, None), UsePoint(2.0, (Use(""),)), sample(3.0, 0.4, None, 0.7)]
    assert mean(group) == UsePoint(
        1.0, (Use("gpu 0", 0.30000000000000004), Use("gpu 1"), Use("gpu 2", 0.7))
    )
    assert largest(group, lambda use: use.share) == 0.7
    assert largest(group, lambda use: use.watts) is None


STEPS = st.lists(st.floats(0.5, 2000), min_size=1, max_size=300)


@given(STEPS)
def test_history_is_in_order_whole_and_bounded(steps: list[float]) -> None:
    """Kept as the tables keep it: a slot for a slot."""
    history, time = UseHistory(), 1e9
    kept: dict[int, dict[int, UsePoint]] = {level: {} for level in range(len(RESOLUTIONS))}
    for step in steps:
        time += step
        for level, point in history.add(sample(time, 0.5)):
            kept[level][RESOLUTIONS[level].slot(point.time)] = point
    found = joined({level: list(slots.values()) for level, slots in kept.items()})
    times = [point.time for point in found]
    assert times == sorted(set(times))
    assert len(found) <= sum(resolution.count for resolution in RESOLUTIONS)
    newest = max((p.time for slots in kept.values() for p in slots.values()), default=0.0)
    fine = {p.time for p in kept[0].values() if p.time > newest - RESOLUTIONS[0].span}
    assert fine <= set(times)


@given(STEPS, st.integers(1, 40))
def test_thinned_points_stay_in_order_and_few(steps: list[float], most: int) -> None:
    points = [sample(sum(steps[: n + 1]), n / len(steps)) for n in range(len(steps))]
    found = thinned(points, most)
    assert len(found) <= most
    assert found[0].time == points[0].time
    assert [point.time for point in found] == sorted(point.time for point in found)
