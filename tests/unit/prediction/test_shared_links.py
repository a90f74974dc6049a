"""Who shares a wire with whom on a cluster, and what that costs a plan."""

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.shared_links import ClusterLinks
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

THREE = Cluster((Level(2, 1e3), Level(2, 1e2, 0.5), Level(2, 1e1, 2.0)), Device())
LAYERS = (Layer("a", "Linear", 1.0, 1.0, 100, 0), Layer("b", "Linear", 0.1, 0.1, 0, 0))
PROFILE = Profile("p", ModelGraph.chain(LAYERS), 1)


def links(cluster, *devices):
    partition = Partition((Stage(0, 1, devices[:-1]), Stage(1, 2, devices[-1:])))
    return ClusterLinks(cluster, PlanDurations(PROFILE, partition, cluster))


def test_a_pair_within_a_machine_has_its_own_wire():
    assert links(THREE, 0, 1).path(0, 1) == ((0, 1),)
    assert links(THREE, 0, 1).latency(0, 1) == 0.0


def test_ranks_of_a_machine_share_the_wire_out_of_it():
    shared = links(THREE, 0, 1, 2)
    assert shared.path(0, 2) == shared.path(1, 2) == (("out of", 2, 0), ("into", 2, 1))
    assert shared.path(2, 0) == (("out of", 2, 1), ("into", 2, 0))
    assert shared.latency(0, 2) == 0.5


def test_a_far_transfer_passes_every_level():
    far = links(THREE, 0, 6)
    assert far.path(0, 1) == (("out of", 2, 0), ("out of", 4, 0), ("into", 2, 3), ("into", 4, 1))
    assert far.latency(0, 1) == 2.0


def test_replicas_of_one_server_wait_for_each_other():
    """Two replicas hand on 300 bytes per microbatch over 100 bytes/s: from one server over one
    wire no microbatch in under 3 seconds, each over its own wire in less."""
    heavy = Profile("p", ModelGraph.chain((Layer("a", "x", 1.0, 1.0, 300, 0), LAYERS[1])), 1)
    plan = Plan("", Partition((Stage(0, 1, (0, 1)), Stage(1, 2, (2,)))), "pipedream", 1)
    servers = Cluster((Level(2, 1e3), Level(3, 1e2)), Device())
    one_level = Cluster((Level(6, 1e2),), Device())
    shared, own = predict(heavy, servers, plan), predict(heavy, one_level, plan)
    assert shared.seconds_per_minibatch >= 3.0 * (1 - 1e-9)
    assert own.seconds_per_minibatch < 2.9
