"""torch's encoders and decoders are cut between their layers, and compute what torch's compute."""

import pytest
import torch
from torch import Tensor, nn

from tests.unit.workers.definitions.linears import names
from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.tracing.opened import is_causal, opened

LENGTHS = torch.tensor([6, 4, 2])


def _encoder(count: int) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, count, nn.LayerNorm(8))


class Model(nn.Module):
    def __init__(self, masked: bool, padded: bool) -> None:
        super().__init__()
        self.masked, self.padded = masked, padded
        self.first, self.encoder, self.last = nn.Linear(4, 8), _encoder(2), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(6) if self.masked else None
        padding = torch.arange(6) >= LENGTHS[:, None] if self.padded else None
        x = self.encoder(self.first(x), mask=mask, src_key_padding_mask=padding)
        return self.last(x)


def _run(parts: list[nn.Module], x: Tensor) -> Tensor:
    bundle = (x,)
    for part in parts[:-1]:
        bundle = part(*bundle)
    return parts[-1](*bundle)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_an_encoder_is_a_layer_per_layer_of_its_own(masked: bool, padded: bool) -> None:
    model, x = Model(masked, padded), torch.rand(3, 6, 4)
    found = layered(model, x)
    assert found.tracing == "symbolic"
    assert {"encoder.layers.0", "encoder.layers.1", "encoder.norm"} <= {*names(found)}
    parts = [cut(found, i, i + 1) for i in range(len(found.layers))]
    for mode in (True, False):
        with torch.set_grad_enabled(mode):
            whole = model.train(mode)(x)
            assert torch.allclose(_run([p.train(mode) for p in parts], x), whole, atol=1e-6)


def test_both_halves_of_a_transformer_are_opened() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Transformer(8, 2, 2, 2, 16, dropout=0.0, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            causal = nn.Transformer.generate_square_subsequent_mask(6)
            return self.inner(x, x.flip(1), tgt_mask=causal)

    model, x = Both(), torch.rand(3, 6, 8)
    found = layered(model, x)
    assert [n for n in names(found) if ".layers." in n] == [
        f"inner.{half}.layers.{number}" for half in ("encoder", "decoder") for number in (0, 1)
    ]
    parts = [cut(found, i, i + 1) for i in range(len(found.layers))]
    assert torch.allclose(_run(parts, x), model(x), atol=1e-6)


def test_one_that_was_changed_stays_whole() -> None:
    class Own(nn.TransformerEncoder):
        pass

    with_hook = _encoder(1)
    with_hook.register_forward_hook(lambda *_: None)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert opened(with_hook) is None
    assert opened(Own(layer, 1)) is None
    assert opened(nn.Linear(2, 2)) is None


def test_a_causal_mask_is_told_from_another_and_from_a_shape() -> None:
    mask, source = nn.Transformer.generate_square_subsequent_mask(6), torch.rand(3, 6, 8)
    assert is_causal(mask, source, batch_first=True)
    assert not is_causal(mask.roll(1, 0), source, batch_first=True)
    assert not is_causal(mask.to("meta"), source, batch_first=True)
