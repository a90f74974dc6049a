"""A profile as the stages of a schedule with local losses have it: with a head behind each cut."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Plan
from backend.profiles.layer import Layer
from backend.profiles.local_head_cost import LocalHeadCost
from backend.profiles.profile import Profile
from backend.units import bytes_text, seconds_text


def headed(profile: Profile, plan: Plan, name: str = "") -> Profile:
    """`profile` with what the head of each stage of `plan` costs in the stage's last layer, and
    without the gradients of stages' inputs, which nobody asks for. `name` is that of the heads, ""
    for those that suit the data. Heads that were not measured cost nothing. Under other schedules
    the profile as it is, and so is what this gave before."""
    if not plan.schedule or not schedule(plan.schedule).local:
        return profile
    heads, order = heads_of(profile, plan, name), _order(profile, plan)
    layers = [replace(layer, local_heads=()) for layer in profile.layers]
    makers = defaultdict[int, set[int]](set)
    for maker, reader in profile.graph.edges:
        makers[reader].add(maker)
    for number, stage in enumerate(plan.partition.stages):
        own = order[stage.first : stage.stop]
        if number:
            _drop_gradients_of_inputs(layers, own, makers)
        if head := heads[number]:
            layers[own[-1]] = _with(layers[own[-1]], head)
    return profile.with_layers(layers)


def heads_of(profile: Profile, plan: Plan, name: str = "") -> tuple[LocalHeadCost | None, ...]:
    """The head of each stage of `plan`, the last one's None. None also where none was measured: the
    profile is an old one, or the cut is none of the profile's own order of layers."""
    order, found = _order(profile, plan), list[LocalHeadCost | None]()
    for stage in plan.partition.stages[:-1]:
        is_own = max(order[: stage.stop]) == stage.stop - 1
        known = profile.layers[stage.stop - 1].local_heads if is_own else ()
        found.append(next((head for head in known if name in ("", head.name)), None))
    return (*found, None)


def heads_reason(profile: Profile, plan: Plan) -> str:
    """What the heads of the stages add to a prediction, in a sentence; "" under schedules with one
    loss. `profile` is at the plan's microbatch."""
    if not schedule(plan.schedule).local or len(plan.partition.stages) == 1:
        return ""
    heads = heads_of(profile, plan)[:-1]
    known = [head for head in heads if head]
    if len(known) < len(heads):
        missing = "some of the stages' heads" if known else "the stages' heads"
        return (
            f"The profile has not measured {missing}: predicted seconds and memory leave them out. "
            "Profile the model as a whole, once more."
        )
    taken = seconds_text(sum(head.seconds for head in known))
    weights = bytes_text(sum(head.parameter_bytes for head in known))
    return (
        f"The stages' heads ({known[0].name}) are predicted too: {taken} per microbatch and "
        f"{weights} of weights. Another local head takes other seconds and memory."
    )


def _order(profile: Profile, plan: Plan) -> tuple[int, ...]:
    return plan.partition.order or tuple(range(len(profile.layers)))


def _drop_gradients_of_inputs(
    layers: list[Layer], own: Sequence[int], makers: Mapping[int, set[int]]
) -> None:
    """Of the layers `own` of a stage those behind no weight of the stage make none: of a backward
    the weights' half is left to them, and nothing where they have no weights."""
    trained: set[int] = set()
    for number in own:
        layer = layers[number]
        if not trained & makers.get(number, set()):
            half = layer.backward_weight or layer.backward - layer.input_half
            # measured apart, a half may take longer than the whole
            left = min(max(half, 0.0), layer.backward) if layer.parameter_bytes else 0.0
            layers[number] = replace(layer, backward=left, backward_weight=left, backward_input=0.0)
            if not layer.parameter_bytes:
                continue
        trained.add(number)


def _with(layer: Layer, head: LocalHeadCost) -> Layer:
    """A layer that does what the head does too. A head works before the layer's own backward."""
    renewal = layer.out_of_place_update or layer.update
    return replace(
        layer,
        backward=layer.backward + head.seconds,
        backward_weight=layer.backward_weight + head.seconds,
        parameter_bytes=layer.parameter_bytes + head.parameter_bytes,
        update=layer.update + head.update,
        adding=layer.adding + head.adding,
        out_of_place_update=renewal + head.out_of_place_update,
        work_bytes=max(layer.work_bytes or 0, head.work_bytes),
        flops=None if layer.flops is None else layer.flops + head.flops,
    )
