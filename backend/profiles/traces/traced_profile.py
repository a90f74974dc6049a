"""A profile from a trace of one's own training steps."""

import re
from dataclasses import dataclass
from math import prod
from statistics import median

from backend.errors import InvalidInput
from backend.profiles.document import check_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.traces.occurrences import Occurrence, occurrences
from backend.profiles.traces.trace_file import Trace, TraceEvent
from backend.units import percent_text

OUTPUT = re.compile(r"output (\S+) (\d{1,18})")
OPTIMIZER = "Optimizer.step#"
NO_LAYERS = (
    "Set a range around each layer: the guide of traces has ten lines that do. with_stack=True "
    "names modules too."
)
WEIGHTS = {
    "aten::linear": (1, 2),
    "aten::conv1d": (1, 2),
    "aten::conv2d": (1, 2),
    "aten::conv3d": (1, 2),
    "aten::embedding": (0,),
    "aten::layer_norm": (2, 3),
    "aten::group_norm": (2, 3),
    "aten::batch_norm": (1, 2),
}
"""Which inputs of an operation are parameters, for traces that have shapes and no sizes."""
BYTES = {"double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "int": 4}
"""Of a number, by the name that a trace has for its type."""
WARM_UP = 1
"""Microbatches left out where there are three or more: the first finds cold caches."""


@dataclass(frozen=True, slots=True)
class TracedLayer:
    """One layer's forwards, a tuple per microbatch: a layer may be run more than once."""

    name: str
    microbatches: tuple[tuple[Occurrence, ...], ...]

    @property
    def forward(self) -> list[float]:
        return [sum(each.forward for each in one) for one in self.microbatches]

    @property
    def backward(self) -> list[float]:
        return [sum(each.backward for each in one) for one in self.microbatches]

    @property
    def first(self) -> Occurrence:
        return self.microbatches[0][0]

    @property
    def spread(self) -> float:
        """Half the range of its seconds over their median."""
        took = [sum(both) for both in zip(self.forward, self.backward, strict=True)]
        middle = median(took)
        return (max(took) - min(took)) / 2 / middle if middle else 0.0


def traced_profile(trace: Trace, microbatch: int | None = None) -> Profile:
    """Medians over the trace's microbatches; `microbatch` is their number of samples, by default
    the first dimension of what the first layer is given. Raises `InvalidInput` on a trace without
    layers, or without a backward."""
    layers = _layers(trace)
    seen = len(layers[0].microbatches)
    samples = microbatch or _samples(layers[0].first)
    outputs = {
        found[1]: int(found[2])
        for event in trace.of("user_annotation")
        if (found := OUTPUT.fullmatch(event.name))
    }
    weights = [_parameter_bytes(layer.first) for layer in layers]
    update, whole = _update(trace), sum(weights)
    profiled = [
        Layer(
            name=layer.name,
            kind=_kind(layer.first),
            forward=median(layer.forward),
            backward=median(layer.backward),
            output_bytes=outputs.get(layer.name, _input_bytes(later.first) if later else 0),
            parameter_bytes=own,
            update=update * own / whole if whole else 0.0,
        )
        for layer, later, own in zip(layers, [*layers[1:], None], weights, strict=True)
    ]
    widest = max(layers, key=lambda layer: layer.spread)
    profile = Profile(
        name=trace.name.split(".")[0] or "trace",
        graph=ModelGraph.chain(tuple(profiled)),
        microbatch=samples,
        device=trace.device,
        repetitions=seen,
        notes=(
            f"From a trace: medians of {seen} microbatches, at most {percent_text(widest.spread)} "
            f"from them ({widest.name}). Layers count as a chain; what autograd keeps is not in a "
            "trace.",
        ),
    )
    check_profile(profile)
    return profile


def _layers(trace: Trace) -> list[TracedLayer]:
    """In the order of their first forwards."""
    runs: dict[str, list[Occurrence]] = {}
    for each in occurrences(trace):
        runs.setdefault(each.layer, []).append(each)
    if not runs:
        raise InvalidInput(f"{trace.name} names no layers", NO_LAYERS)
    trained = {name: _trained(found) for name, found in runs.items()}
    if not any(each.backward for found in trained.values() for each in found):
        raise InvalidInput(
            f"{trace.name} has forwards of {len(runs)} layers, and no backward of them",
            "Trace whole training steps, on one thread's forwards.",
        )
    count = min(map(len, trained.values()))
    return [TracedLayer(name, _grouped(found, count)) for name, found in trained.items()]


def _trained(found: list[Occurrence]) -> list[Occurrence]:
    """Without those of an evaluation: of a layer that has backwards, the forwards with one."""
    return [each for each in found if each.backward] or found


def _grouped(found: list[Occurrence], count: int) -> tuple[tuple[Occurrence, ...], ...]:
    """As many microbatches as every layer has, the warm-up left out."""
    each = len(found) // count
    groups = [tuple(found[n * each : (n + 1) * each]) for n in range(count)]
    return tuple(groups[WARM_UP:] if count >= 3 else groups)


def _samples(first: Occurrence) -> int:
    for operation in first.operations:
        for shape in _shapes(operation):
            if len(shape) > 1 and shape[0] > 0:
                return shape[0]
    raise InvalidInput(
        "the trace does not say how many samples a microbatch has",
        "Give the samples per microbatch, or record with record_shapes=True.",
    )


def _kind(first: Occurrence) -> str:
    """What it mostly is: its longest operation."""
    longest = max(first.operations, key=lambda event: event.seconds, default=None)
    return longest.name.removeprefix("aten::") if longest else "layer"


def _parameter_bytes(first: Occurrence) -> int:
    """As the range says; else of the operations whose parameters are known."""
    if first.parameter_bytes is not None:
        return first.parameter_bytes
    return sum(
        _bytes(event, place) for event in first.operations for place in WEIGHTS.get(event.name, ())
    )


def _input_bytes(first: Occurrence) -> int:
    return next((size for event in first.operations if (size := _bytes(event, 0))), 0)


def _bytes(event: TraceEvent, place: int) -> int:
    """Of one of the tensors that an operation was given; 0 where the trace does not say."""
    shapes, kinds = _shapes(event), event.facts.get("Input type")
    if place >= len(shapes) or not isinstance(kinds, list) or place >= len(kinds):
        return 0
    return prod(shapes[place]) * BYTES.get(kinds[place], 0) if shapes[place] else 0


def _shapes(event: TraceEvent) -> list[list[int]]:
    """Of each input; [] for what is no tensor."""
    told = event.facts.get("Input Dims")
    found = told if isinstance(told, list) else []
    return [
        shape if isinstance(shape, list) and all(_is_size(size) for size in shape) else []
        for shape in found
    ]


def _is_size(size: object) -> bool:
    return isinstance(size, int) and 0 <= size < 2**40


def _update(trace: Trace) -> float:
    """Seconds of an update of all weights, on the processor's clock; 0 where none was traced."""
    found = [e.seconds for e in trace.of("user_annotation") if e.name.startswith(OPTIMIZER)]
    return median(found[WARM_UP:] if len(found) >= 3 else found) if found else 0.0
