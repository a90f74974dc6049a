"""What pipelines exchange: what it conserves, where it stands still, and what it is equal to."""

from threading import Barrier, Semaphore, Thread

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.planning.sites import SITE_RULES, Sites, read_sites
from tests.unit.workers.runtime.state.peers import Still, Thereby, exchanged
from workers.runtime.state.exchanges.catalog import EXCHANGES, exchange_of
from workers.runtime.state.exchanges.diloco import DiLoCo
from workers.runtime.state.exchanges.elastic import Elastic
from workers.runtime.state.exchanges.gaia import Gaia
from workers.runtime.state.exchanges.spread import SAMPLED, squares

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=4)


def test_every_rule_that_is_planned_with_computes() -> None:
    assert EXCHANGES.keys() == SITE_RULES.keys()


@pytest.mark.parametrize("name", SITE_RULES)
def test_what_a_rule_keeps_is_what_is_planned_for(name: str) -> None:
    rule = exchange_of(Sites(name), 0.5)
    rule.begin([torch.ones(3), torch.ones(2, 2)])
    assert len(rule.state) == SITE_RULES[name].copies
    assert all([each.shape for each in kept] == [(3,), (2, 2)] for kept in rule.state.values())
    rule.exchange([], 1, Still())  # a stage without weights


@pytest.mark.parametrize("name", SITE_RULES)
def test_pipelines_that_did_not_move_stay_where_they_are(name: str) -> None:
    rules = [exchange_of(Sites(name, every=1), 1 / 3) for _ in range(3)]
    weights = [[torch.full((3,), 2.0)] for _ in range(3)]
    for rule, own in zip(rules, weights, strict=True):
        rule.begin(own)
    for update in (1, 2):
        exchanged(rules, weights, update)
    assert all(torch.equal(own[0], torch.full((3,), 2.0)) for own in weights)


@given(VALUES, st.floats(-10, 10), st.floats(0, 1))
def test_elastic_averaging_conserves_the_sum_of_all(
    values: list[float], centre: float, share: float
) -> None:
    rules = [Elastic(share / len(values)) for _ in values]
    for rule in rules:
        rule.begin([torch.tensor([centre], dtype=torch.float64)])
    pipelines = [[torch.tensor([value], dtype=torch.float64)] for value in values]
    exchanged(rules, pipelines, 1)
    after = float(sum(own[0] for own in pipelines) + rules[0].common[0])
    assert after == pytest.approx(centre + sum(values), abs=1e-9)
    assert all(torch.equal(rule.common[0], rules[0].common[0]) for rule in rules)


def step(weights: list[torch.Tensor], seed: int, rate: float = 0.1) -> None:
    """SGD on gradients of a seed."""
    torch.manual_seed(seed)
    for weight in weights:
        weight -= rate * torch.randn(weight.shape, dtype=weight.dtype)


@pytest.mark.parametrize("sites", [2, 3])
def test_diloco_of_every_update_at_a_rate_of_1_is_synchronous_sgd(sites: int) -> None:
    settings = Sites("diloco", every=1, rate=1.0, momentum=0.0)
    begun = [torch.ones(4, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)]
    rules, weights = [], [[w.clone() for w in begun] for _ in range(sites)]
    for own in weights:
        rules.append(DiLoCo(settings))
        rules[-1].begin(own)
    whole = [weight.clone() for weight in begun]
    for update in range(1, 6):
        for place, own in enumerate(weights):
            step(own, 100 * update + place)
        exchanged(rules, weights, update)
        for place in range(sites):  # the mean of the gradients is as many steps of a part
            step(whole, 100 * update + place, 0.1 / sites)
        for own in weights:
            assert all(torch.equal(a, b) for a, b in zip(own, weights[0], strict=True))
            torch.testing.assert_close(own, whole, rtol=0, atol=1e-12)


def test_the_bytes_of_a_sum_are_those_of_a_ring() -> None:
    rule, weights = DiLoCo(Sites("diloco", every=2)), [torch.ones(30)]
    rule.begin(weights)
    for update in range(1, 6):
        rule.exchange(weights, update, Still())
    assert rule.sent == 2 * 30 * 4  # two exchanges between two: each sends as much as there is


def test_dilocos_outer_optimizer_is_torchs_nesterov() -> None:
    rules = [DiLoCo(Sites("diloco", every=2)) for _ in range(2)]
    weights = [[torch.ones(5, dtype=torch.float64)] for _ in range(2)]
    outer = torch.nn.Parameter(torch.ones(5, dtype=torch.float64))
    optimizer = torch.optim.SGD([outer], 0.7, 0.9, nesterov=True)
    for rule, own in zip(rules, weights, strict=True):
        rule.begin(own)
    for update in range(1, 9):
        for place, own in enumerate(weights):
            step(own, 10 * update + place)
        before = [own[0].clone() for own in weights]
        exchanged(rules, weights, update)
        if update % 2:
            assert all(torch.equal(a, b[0]) for a, b in zip(before, weights, strict=True))
            continue
        outer.grad = outer.detach() - (before[0] + before[1]) / 2
        optimizer.step()
        torch.testing.assert_close(weights[0][0], outer.detach(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SITE_RULES)
def test_a_rule_goes_on_from_what_it_kept_to_the_last_bit(name: str) -> None:
    alone, other = (exchange_of(Sites(name, every=1), 0.5) for _ in range(2))
    mine, theirs = [torch.ones(3)], [torch.ones(3)]
    alone.begin(mine)
    for update in (1, 2):
        step(mine, update)
        alone.exchange(mine, update, Still())
    other.begin(theirs)
    other.load_state({kind: [t.clone() for t in kept] for kind, kept in alone.state.items()})
    theirs = [weight.clone() for weight in mine]
    for own, rule in ((mine, alone), (theirs, other)):
        step(own, 3)
        rule.exchange(own, 3, Still())
    assert torch.equal(mine[0], theirs[0])


def gaia(sites: int, begun: list[torch.Tensor], **settings: float):
    """As many rules with weights, which begin with the same."""
    rules = [Gaia(Sites("gaia", **settings)) for _ in range(sites)]
    for rule in rules:
        rule.begin(begun)
    return rules, [[weight.clone() for weight in begun] for _ in rules]


@pytest.mark.parametrize("sites", [2, 3])
def test_gaia_with_a_threshold_of_0_is_synchronous_sgd(sites: int) -> None:
    begun = [torch.ones(4, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)]
    rules, weights = gaia(sites, begun, threshold=0.0)
    whole = [weight.clone() for weight in begun]
    for update in range(1, 6):
        for place, own in enumerate(weights):
            step(own, 100 * update + place)
        exchanged(rules, weights, update)
        for place in range(sites):
            step(whole, 100 * update + place, 0.1 / sites)
        for own in weights:
            assert all(torch.equal(a, b) for a, b in zip(own, weights[0], strict=True))
            torch.testing.assert_close(own, whole, rtol=0, atol=1e-12)


def test_gaia_with_an_infinite_threshold_sends_nothing() -> None:
    rules, weights = gaia(2, [torch.ones(4, dtype=torch.float64)], threshold=float("inf"))
    alone = torch.ones(4, dtype=torch.float64)
    for update in range(1, 6):
        for place, own in enumerate(weights):
            step(own, 10 * update + place)
        step([alone], 10 * update, 0.1 / 2)
        assert exchanged(rules, weights, update) == [0, 0]
    torch.testing.assert_close(weights[0][0], alone, rtol=0, atol=1e-12)


WHOLE = st.lists(st.lists(st.integers(-8, 8), min_size=40, max_size=40), min_size=1, max_size=4)


@given(WHOLE, WHOLE, st.sampled_from([0.01, 0.2, 1.0, 3.0]), st.sampled_from([0, 2]))
def test_sites_of_gaia_differ_by_what_they_hold_back(
    one: list[list[int]], other: list[list[int]], threshold: float, full: int
) -> None:
    """Element by element, without rounding: updates are even numbers, of which a half counts."""
    begun = [torch.full((5, 8), 16.0)]
    rules, weights = gaia(2, begun, threshold=threshold, full=full)
    learned = torch.zeros(5, 8)
    for update, moves in enumerate(zip(one, other, strict=False), start=1):
        for own, move in zip(weights, moves, strict=True):
            own[0] += 2 * torch.tensor(move, dtype=torch.float32).view(5, 8)
            learned += torch.tensor(move, dtype=torch.float32).view(5, 8)
        before = [rule.state["held_back"][0].clone() for rule in rules]
        told = [rule.sent for rule in rules]
        sent = exchanged(rules, weights, update)
        assert [rule.sent - then for rule, then in zip(rules, told, strict=True)] == sent
        held = [rule.state["held_back"][0] for rule in rules]
        assert torch.equal(weights[0][0] - weights[1][0], held[0] - held[1])
        common = [rule.state["reference"][0] for rule in rules]
        assert torch.equal(common[0], common[1])
        assert torch.equal(common[0] + held[0] + held[1], begun[0] + learned)  # nothing is lost
        for place, move in enumerate(moves):
            changed = before[place] + torch.tensor(move, dtype=torch.float32).view(5, 8)
            gone = held[place] != changed
            assert torch.equal(held[place][gone], torch.zeros(int(gone.sum())))
            assert sent[place] in (int((changed != 0)[gone].sum()) * 8, 40 * 4)
        if full and update % full == 0:
            assert not held[0].any()
            assert not held[1].any()


@pytest.mark.parametrize(("update", "sent"), [(1, 0), (2, 0), (3, 10), (9, 10)])
def test_gaias_threshold_falls_as_one_over_the_root_of_the_updates(update: int, sent: int) -> None:
    """Of 0.06 of the weight: below 0.1 and 0.0707, above 0.0577 and 0.0333."""
    (rule, _), _ = gaia(2, [torch.ones(100)], threshold=0.1)
    moved = torch.ones(100)
    moved[:10] = 1 / 0.94  # half of the change is held back: 0.06 of what the weight is then
    moved[:10] += moved[:10] - 1
    held = 0.5 * (moved[0] - 1)
    assert float(held / (1 + held)) == pytest.approx(0.06, abs=1e-4)
    rule.exchange([moved], update, Still())
    assert rule.sent == 8 * sent
    assert int((rule.state["held_back"][0] != 0).sum()) == 10 - sent


@pytest.mark.parametrize(("count", "num_bytes"), [(49, 49 * 8), (50, 400), (90, 400)])
def test_gaia_sends_all_without_places_where_that_is_no_more(count: int, num_bytes: int) -> None:
    (rule, _), _ = gaia(2, [torch.ones(100)], threshold=0.1)
    moved = torch.full((100,), 1.001)
    moved[:count] = 2.0
    rule.exchange([moved], 1, Still())
    assert rule.sent == num_bytes
    assert int((rule.state["held_back"][0] != 0).sum()) == (0 if num_bytes == 400 else 100 - count)


class Watched(Thereby):
    """Tells when it has come to an exchange."""

    def __init__(self, place: int, barrier: Barrier, table: dict, came: Semaphore) -> None:
        super().__init__(place, barrier, table)
        self._came = came

    def sum(self, tensor: torch.Tensor) -> None:
        self._came.release()
        super().sum(tensor)

    def gathered(self, value: int) -> list[int]:
        self._came.release()
        return super().gathered(value)


@pytest.mark.parametrize(
    "sites", [Sites("elastic"), Sites("gaia"), Sites("diloco", every=3)], ids=lambda each: each.rule
)
def test_a_site_waits_for_the_others_at_its_exchange(sites: Sites) -> None:
    """The other one makes no update until this one has come: it is `period` ahead by then."""
    barrier, table, came = Barrier(2), {}, Semaphore(0)
    made = [0, 0]

    def trained(place: int, updates: int) -> None:
        rule, weights = exchange_of(sites, 0.5), [torch.ones(2)]
        rule.begin(weights)
        peers = Watched(place, barrier, table, came)
        for update in range(1, updates + 1):
            made[place] = update
            rule.exchange(weights, update, peers)

    ahead = Thread(target=trained, args=(0, 2 * sites.period))
    ahead.start()
    came.acquire()
    assert made == [sites.period, 0]
    behind = Thread(target=trained, args=(1, 2 * sites.period))
    behind.start()
    ahead.join()
    behind.join()
    assert made == [2 * sites.period] * 2


def test_gaia_promises_that_what_is_held_back_is_small() -> None:
    rules, weights = gaia(2, [torch.rand(500, dtype=torch.float64) + 0.5], threshold=0.05)
    for update in range(1, 5):
        for place, own in enumerate(weights):
            step(own, 10 * update + place)
        sent = exchanged(rules, weights, update)
        assert all(0 < each < 500 * 8 for each in sent)
        for rule in rules:
            held, common = (rule.state[kind][0] for kind in ("held_back", "reference"))
            assert held.any()
            assert float(held.abs().max()) <= 0.05 / update**0.5 * float(common.abs().max() + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gossip", "no rule between sites"),
        ("diloco:steps=3", "has no setting 'steps'"),
        ("diloco:every=often", "has no number"),
        ("diloco:every=0", "every 0 updates"),
        ("diloco:rate=0", "not above 0"),
        ("diloco:rate=nan", "not above 0"),
        ("diloco:momentum=1", "not in 0 up to 1"),
        ("elastic:every=3", "has no setting"),
        ("gaia:threshold=-1", "is below 0"),
        ("gaia:threshold=nan", "is below 0"),
        ("gaia:full=-1", "all every -1 updates"),
    ],
)
def test_what_no_rule_has_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_sites(text)


@given(st.integers(1, 1000), st.floats(0.1, 2), st.floats(0, 0.99))
def test_a_rule_is_read_as_it_is_written(every: int, rate: float, momentum: float) -> None:
    found = Sites("diloco", every, round(rate, 6), round(momentum, 6))
    assert read_sites(found.words) == found
    assert read_sites("") is None


class Mirrored(Still):
    """Another pipeline, each of whose weights is three times this one's."""

    def sum(self, tensor: torch.Tensor) -> None:
        tensor *= 4


def test_spread_is_the_distance_to_the_mean() -> None:
    stages = [[torch.tensor([1.0, -2.0]), torch.ones(2, 2)], [torch.tensor([3.0])], []]
    own = 1 + 4 + 4 + 9  # the mean is twice, the distance once this one's
    assert squares(stages, Mirrored()) == pytest.approx((own, 4 * own))
    assert squares(stages, None) == (0.0, 0.0)


def test_of_a_large_stage_a_part_is_compared() -> None:
    away, mean = squares([[torch.ones(3 * SAMPLED), torch.ones(5)]], Mirrored())
    assert mean == 4 * away
    assert SAMPLED / 2 < away <= SAMPLED + 2
