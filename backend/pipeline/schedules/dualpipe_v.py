"""DualPipeV: forwards of one chunk beside backwards of the other, two chunks of each rank as a V.

    2 (p-1-r) x F0 | (r+1) x (F0 F1) | (p-1-r) x (I1 W F1) | (m-2p+r+1) x (F0 B1 F1 B0)
    (p-1-r) x (B1 F1 B0) | (r+1) x (B1 B0) | (p-1-r) x (W I0) | (r+1) x W

In the last B1 B0 from the middle on the input's half runs alone, and weights' halves wait in a
queue. DeepSeek runs each F beside the B that follows, which hides the messages of experts; here
one comes after the other. So a batch costs p - 1 chunks more than its compute where F = I = W
(`zb-v`: nothing), and a rank holds 2 p + 1 of them.
"""

from collections import Counter, deque
from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import V_CHUNKS
from backend.pipeline.kinds import Kind
from backend.pipeline.schedules.interleaved import even_shares
from backend.pipeline.schedules.v import v_schedule
from backend.pipeline.shape import Shape

F, B, W = Kind.FORWARD, Kind.BACKWARD, Kind.BACKWARD_WEIGHT
INPUT = Kind.BACKWARD_INPUT


def order(
    pipeline_rank: int, size: int, chunks: int, microbatches: int
) -> Iterator[tuple[Kind, int, int]]:
    """As torch 2.13 has it (`ScheduleDualPipeV`), its pairs one after the other."""
    forwards: Counter[int] = Counter()
    backwards: Counter[int] = Counter()
    waiting: deque[tuple[int, int]] = deque()
    for kind, chunk in _parts(pipeline_rank, size, microbatches):
        if kind is W:
            if waiting:
                yield (W, *waiting.popleft())
            continue
        done = forwards if kind is F else backwards
        if kind is INPUT:
            waiting.append((chunk, done[chunk]))
        yield kind, chunk, done[chunk]
        done[chunk] += 1


def _parts(rank: int, size: int, microbatches: int) -> Iterator[tuple[Kind, int]]:
    """Kinds and chunks; a W is that of the oldest input's half, if there is one."""
    after, own = size - 1 - rank, rank + 1
    yield from [(F, 0)] * (2 * after)
    yield from [(F, 0), (F, 1)] * own
    yield from [(INPUT, 1), (W, 1), (F, 1)] * after
    yield from [(F, 0), (B, 1), (F, 1), (B, 0)] * (microbatches - 2 * size + own)
    yield from [(B, 1), (F, 1), (B, 0)] * after
    for turn in range(own):
        half = own // 2
        yield INPUT if turn > half or (turn == half and rank % 2) else B, 1
        yield INPUT if turn >= half else B, 0
    yield from [(W, 0), (INPUT, 0)] * after
    yield from [(W, 0)] * own


def enough(shape: Shape) -> None:
    """Raises `InvalidInput` where a replica gets fewer than 2 p microbatches of a batch."""
    even_shares(shape)
    least = V_CHUNKS * shape.pipeline_size * shape.replicas[0]
    if shape.chunks > 1 and shape.batch < least:
        raise InvalidInput(
            f"dualpipe-v needs a microbatch for each of its {shape.num_stages} stages in every "
            f"replica, {least} of a batch, not {shape.batch}",
            advice=f"Use batches of {least} microbatches or more, fewer ranks, or zb-v.",
        )


DUALPIPE_V = v_schedule(
    name="dualpipe-v",
    title="DualPipeV",
    source="DeepSeek, DualPipe, 2025; torch 2.13, ScheduleDualPipeV",
    batch_order=order,
    admits=enough,
)
