"""Seeds made of a run's seed and what they are for, so that no draw depends on another one."""

_MASK = 2**63


def derived(seed: int, *parts: int) -> int:
    """A seed of 63 bits for this purpose (each step multiplies by a constant of Knuth's MMIX,
    The Art of Computer Programming 2, section 3.3.4)."""
    for part in parts:
        seed = (seed * 6364136223846793005 + part + 1442695040888963407) % _MASK
    return seed
