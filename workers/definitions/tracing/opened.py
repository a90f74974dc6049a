"""torch's own modules that hold nothing but layers: what each does, layer by layer.

Stand-ins cannot pass their forwards, which look at masks. Called as a whole, one of them would be
one layer with most of the model.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules import transformer

Forward = Callable[..., Any]


def opened(module: nn.Module) -> Forward | None:
    """What the module does with stand-ins; None where it is no such module, or has hooks."""
    has_hooks = module._forward_hooks or module._forward_pre_hooks
    forward = None if has_hooks else _FORWARDS.get(type(module))
    return None if forward is None else forward.__get__(module)


def _encoder(
    self: nn.TransformerEncoder,
    src: Any,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool | None = None,
) -> Any:
    output = src
    for layer in self.layers:
        causal = _causal(mask, is_causal, src, self.layers[0])
        output = layer(
            output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask
        )
    if src_key_padding_mask is not None and mask is None and self.use_nested_tensor:
        mode = output.tracer.create_proxy("get_attr", "training", (), {})
        called = (mode, output, src_key_padding_mask, self.mask_check)
        output = output.tracer.create_proxy("call_function", zero_padded, called, {})
    return output if self.norm is None else self.norm(output)


def _decoder(
    self: nn.TransformerDecoder,
    tgt: Any,
    memory: Any,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    tgt_is_causal: bool | None = None,
    memory_is_causal: bool = False,
) -> Any:
    output = tgt
    for layer in self.layers:
        output = layer(
            output,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0]),
            memory_is_causal=memory_is_causal,
        )
    return output if self.norm is None else self.norm(output)


def _both(
    self: nn.Transformer,
    src: Any,
    tgt: Any,
    src_mask: Any = None,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    src_key_padding_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    src_is_causal: bool | None = None,
    tgt_is_causal: bool | None = None,
    memory_is_causal: bool = False,
) -> Any:
    memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
    return self.decoder(
        tgt,
        memory,
        tgt_mask,
        memory_mask,
        tgt_key_padding_mask,
        memory_key_padding_mask,
        tgt_is_causal,
        memory_is_causal,
    )


_FORWARDS: dict[type[nn.Module], Any] = {
    nn.TransformerEncoder: _encoder,
    nn.TransformerDecoder: _decoder,
    nn.Transformer: _both,
}


def _causal(mask: Any, given: bool | None, source: Any, layer: nn.Module) -> Any:
    """Asked for before every layer: the answer is no tensor and must not cross a cut."""
    if given is not None or mask is None:
        return given is True
    tracer = next(each.tracer for each in (source, mask) if isinstance(each, fx.Proxy))
    attention: Any = layer.self_attn
    called = (mask, source, attention.batch_first)
    return tracer.create_proxy("call_function", is_causal, called, {})


def is_causal(mask: Tensor, source: Tensor, batch_first: bool) -> bool:
    """As torch finds it; False on shapes, which have no values to look at."""
    if mask.is_meta or isinstance(mask, torch._subclasses.FakeTensor):
        return False
    length = transformer._get_seq_len(source, batch_first)
    return transformer._detect_is_causal_mask(mask, None, length)


def zero_padded(training: bool, output: Tensor, padding: Tensor, checks: bool) -> Tensor:
    """What torch does in evaluation without gradients: words of padding become zero."""
    usual = training or torch.is_grad_enabled() or torch.is_autocast_enabled()
    if usual or output.dim() != 3 or not torch.backends.mha.get_fastpath_enabled():
        return output
    kept = padding.logical_not()
    if checks and not torch._nested_tensor_from_mask_left_aligned(output, kept):
        return output
    return output.masked_fill(~kept.unsqueeze(-1), 0.0)
