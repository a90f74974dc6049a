"""Models of many layers: a transformer's blocks under numbered paths, and a chain of nodes."""

from random import Random

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

BLOCK = ("norm", "self_attn.q_proj", "self_attn.o_proj", "mlp.up", "mlp.act", "mlp.down")


def transformer(num_blocks: int, noise: float = 0.05) -> Profile:
    """Embedding, blocks of six layers whose seconds differ by `noise`, norm and head."""
    random = Random(num_blocks)
    layers = [Layer("model.embed_tokens", "Embedding", 2e-4, 3e-4, 65_536, 2_000_000)]
    for block in range(num_blocks):
        for place, part in enumerate(BLOCK):
            seconds = 1e-4 * (place + 1) * random.uniform(1 - noise, 1 + noise)
            name = f"model.layers.{block}.{part}"
            kind = "Linear" if "." in part else "Norm"
            layers.append(Layer(name, kind, seconds, 2 * seconds, 65_536, 4096 * place))
    layers.append(Layer("model.norm", "Norm", 1e-5, 1e-5, 65_536, 1024))
    layers.append(Layer("lm_head", "Linear", 3e-4, 6e-4, 512, 2_000_000))
    return Profile("transformer", ModelGraph.chain(tuple(layers)), microbatch=4)


def irregular(num_layers: int) -> Profile:
    """Nodes as a graph.txt names them; no two are equal."""
    layers = tuple(
        Layer(f"node{i + 1}", ("Conv2d", "BatchNorm2d")[i % 2], 1e-4, 2e-4, 10**6 + i, 1000 + i)
        for i in range(num_layers)
    )
    return Profile("irregular", ModelGraph.chain(layers), microbatch=32)


SIZES = (14, 40, 71)
"""Blocks of models with 87, 243 and 429 layers."""
MODELS = [*(transformer(blocks) for blocks in SIZES), *(irregular(n) for n in (80, 240, 430))]
