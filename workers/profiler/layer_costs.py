"""The layers of a profile: what the model says of each, what was measured, what was counted."""

from collections.abc import Sequence

from backend.profiles.layer import Layer
from workers.definitions.layers import LayeredModel
from workers.profiler.measure import ModelTimes, usual
from workers.profiler.sizes import LayerSizes


def layer_costs(
    layered: LayeredModel,
    measured: ModelTimes,
    sizes: LayerSizes | None,
    spreads: Sequence[float | None] = (),
) -> tuple[Layer, ...]:
    """One per layer; `spreads` per layer where equal ones stand for each other."""
    layers = []
    for index, (layer, times) in enumerate(zip(layered.layers, measured.layers, strict=True)):
        forward, backward, update = measured.seconds(times)
        layers.append(
            Layer(
                name=layer.name,
                kind=layer.kind,
                forward=forward,
                backward=backward,
                output_bytes=layer.output_bytes,
                parameter_bytes=layer.parameter_bytes,
                update=update,
                backward_input=measured.backward_input(times),
                backward_weight=measured.backward_weight(times),
                adding=usual(times.adding),
                out_of_place_update=usual(times.out_of_place_update),
                saved_bytes=sizes.saved[index] if sizes else None,
                buffer_bytes=layer.buffer_bytes,
                frozen_bytes=layer.frozen_bytes,
                flops=sizes.flops[index] if sizes else None,
                work_bytes=sizes.work[index] if sizes and sizes.work else None,
                deferred_bytes=sizes.deferred[index] if sizes and sizes.deferred else None,
                spread=spreads[index] if spreads else None,
            )
        )
    return tuple(layers)
