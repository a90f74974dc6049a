"""What a message costs is measured between two real ends."""

import torch

from workers.profiler.message_overhead import message_overhead


def test_both_ends_pay_and_more_bytes_cost_no_less() -> None:
    torch.set_num_threads(1)
    found = message_overhead()
    assert found.sending(1 << 20) >= found.sending(1 << 10) >= 0
    assert found.receiving(1 << 20) >= found.receiving(1 << 10) >= 0
    assert found.sending(1 << 20) > 0
