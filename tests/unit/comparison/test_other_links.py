"""A run on fewer machines than its plan is for."""

from dataclasses import replace

import pytest

from app.commands.beside_plan import expected_rows
from app.differences import other_links_words
from backend.cluster.cluster import Cluster, Level
from backend.comparison.other_links import OtherLinks, other_links
from backend.comparison.shared_cores import Expectation
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites
from backend.runs.request.spec import PoolSpec, TrainSpec
from tests.unit.app.components.test_run_figures import a_run

BETWEEN, SITES = Level(2, 1e9, 1e-4), Level(2, 1.25e7, 0.02, sites=True)
CLUSTER = Cluster((Level(2, 1e10), BETWEEN, SITES))
HALVES = Plan("", Partition((Stage(0, 1, (0, 1)), Stage(1, 2, (2, 3)))), "pipedream", 4)
APART = replace(HALVES, num_pipelines=2, sites=Sites("diloco", devices=4))
NODES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("plan", "nodes", "found"),
    [
        (HALVES, (), OtherLinks(2, 1, BETWEEN)),
        (HALVES, NODES[:1], OtherLinks(2, 1, BETWEEN)),
        (HALVES, NODES[:2], None),
        (APART, (), OtherLinks(4, 1, SITES)),
        (APART, NODES[:2], OtherLinks(4, 2, SITES)),
        (APART, NODES, None),
    ],
)
def test_the_slowest_link_that_was_not_there_is_named(
    plan: Plan, nodes: tuple[str, ...], found: OtherLinks | None
) -> None:
    spec = TrainSpec(1, plan, nodes=nodes)
    assert other_links(spec, CLUSTER) == found
    assert other_links(replace(spec, emulate=1.0), CLUSTER) is None


def test_one_machine_has_the_links_of_its_plan() -> None:
    inside = replace(HALVES, partition=Partition((Stage(0, 1, (2,)), Stage(1, 2, (3,)))))
    assert other_links(TrainSpec(1, inside), CLUSTER) is None


def test_a_pools_machines_count() -> None:
    spec = TrainSpec(1, HALVES, pool=PoolSpec("gpu", nodes=2))
    assert other_links(spec, CLUSTER) is None
    assert other_links(replace(spec, pool=PoolSpec("gpu")), CLUSTER) == OtherLinks(2, 1, BETWEEN)


def test_a_plan_for_another_cluster_is_not_judged() -> None:
    assert other_links(TrainSpec(1, HALVES), Cluster((Level(2, 1e9),))) is None


def test_the_words_name_both_numbers_of_machines_and_the_link() -> None:
    found = OtherLinks(2, 1, SITES)
    said = other_links_words(found).replace("\u00a0", " ")
    assert "for 2 machines with links of 12.5 MB/s and 20.0 ms between them" in said
    assert "the run is on 1 machine" in said
    assert "run on 2 nodes, or plan for 1 machine" in said
    rows = dict(expected_rows(a_run(), Expectation(other_links=found)))
    assert rows["other links"] == other_links_words(found)
    assert "other links" not in dict(expected_rows(a_run(), Expectation()))
