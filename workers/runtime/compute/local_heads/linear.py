"""A linear layer on pooled features: the loss of prediction (Nøkland and Eidnes, ICML 2019)."""

from workers.runtime.compute.local_heads.features import Features
from workers.runtime.compute.local_heads.head import HeadSize, LocalHead, zero_linear


def linear(features: Features, size: HeadSize) -> LocalHead:
    """Begins with zeros."""
    return LocalHead(features, zero_linear(size))
