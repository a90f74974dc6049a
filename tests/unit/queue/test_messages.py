"""Each node has a queue of its own, and a message names nothing but a run."""

from backend.queue.messages import RUN, queue_name


def test_nodes_do_not_share_a_queue():
    assert queue_name("a") != queue_name("b")
    assert queue_name("gpu1.example") == "node.gpu1.example"


def test_the_task_keeps_its_name_across_versions():
    assert RUN == "stageflow.run"
