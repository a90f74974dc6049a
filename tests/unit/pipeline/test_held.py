from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Forward, Step
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from tests.oracles.held import in_flight, live_versions


def test_a_forward_is_in_flight_until_its_backward():
    actions = [Forward(0, 0), Forward(0, 1), Backward(0, 0), Step(0, 1), Backward(0, 1)]
    assert in_flight(actions) == [1, 2, 1, 1, 0]


def test_a_split_backward_holds_until_the_weights_half():
    actions = [Forward(0, 0), BackwardInput(0, 0), Forward(0, 1), BackwardWeight(0, 0)]
    assert in_flight(actions) == [1, 1, 1, 0]


def test_forwards_without_a_backward_hold_nothing():
    assert in_flight([Forward(0, 0), Forward(0, 1)]) == [0, 0]


def test_chunks_of_a_rank_add_up():
    actions = [Forward(0, 0), Forward(2, 0), Backward(2, 0), Backward(0, 0)]
    assert in_flight(actions) == [1, 2, 1, 0]


def test_a_version_lives_while_it_is_newest_or_still_to_be_read():
    actions = [Forward(0, 0), Step(0, 1), Forward(0, 1, 1), Step(0, 2), Backward(0, 0)]
    actions += [Backward(0, 1, 1), Step(0, 3)]
    assert live_versions(actions, 0) == [1, 2, 2, 3, 2, 1, 1]


def test_versions_of_another_stage_do_not_count():
    assert live_versions([Forward(1, 0), Step(1, 1), Backward(1, 0)], 0) == [1, 1, 1]


def test_pipedream_ramps_up_to_its_stash_and_down_again():
    (first, last) = lower(schedule("pipedream"), Shape((1, 1), 4)).ranks
    assert max(live_versions(first, 0)) == 2
    assert live_versions(first, 0)[-1] == 1
    assert set(live_versions(last, 1)) == {1}
