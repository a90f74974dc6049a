"""The rules that one rank's actions must keep by themselves, read first to last."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Flow,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.routing import consumer, makes, needs, producer
from backend.pipeline.rules.faults import Rule
from backend.pipeline.schedules.schedule import Updates
from backend.pipeline.shape import RankCoordinates

Broken = tuple[Rule, str]


@dataclass(slots=True)
class RankRules:
    """What has happened on a rank so far. `check` takes its actions in order."""

    coordinates: RankCoordinates
    updates: Updates
    consistent: bool = True
    local: bool = False
    forwards: dict[tuple[int, int], int] = field(default_factory=dict)
    inputs: set[tuple[int, int]] = field(default_factory=set)
    weights: set[tuple[int, int]] = field(default_factory=set)
    gradients: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    steps: Counter[int] = field(default_factory=Counter)
    reduced: dict[int, int] = field(default_factory=dict)
    apart: dict[int, int] = field(default_factory=dict)
    recomputed: set[tuple[int, int]] = field(default_factory=set)
    here: set[Message] = field(default_factory=set)
    made: set[Message] = field(default_factory=set)
    sent: set[Message] = field(default_factory=set)

    def check(self, action: Action) -> Iterator[Broken]:
        """The rules that `action` breaks after all before it; then it counts as done."""
        match action:
            case Forward():
                yield from self._forward(action)
            case Recompute():
                yield from self._recompute(action)
            case Backward() | BackwardInput() | BackwardWeight():
                yield from self._backward(action)
            case Step():
                yield from self._step(action)
            case AllReduce():
                yield from self._all_reduce(action)
            case Average():
                yield from self._average(action)
            case Send():
                yield from self._send(action)
            case Recv():
                yield from self._recv(action)

    def missing(self) -> Iterator[Broken]:
        """What should have happened by the end and has not."""
        applied = {microbatch for update in self.updates for microbatch in update}
        for stage in self.coordinates.stages:
            for microbatch in self.coordinates.microbatches:
                if (stage, microbatch) not in self.forwards:
                    yield Rule.ONCE, f"never runs {stage}F{microbatch}"
                if microbatch in applied and (stage, microbatch) not in self.weights:
                    yield Rule.ONCE, f"never finishes the backward {stage}B{microbatch}"
            if self.steps[stage] < len(self.updates):
                count = f"{self.steps[stage]} of {len(self.updates)} updates"
                yield Rule.UPDATE, f"makes {count} of stage {stage}"
            if stage in self.apart:
                version = self.apart[stage]
                yield (
                    Rule.GROUP,
                    f"never averages version {version} of stage {stage} over pipelines",
                )
        for message in self.made - self.sent:
            if (to := consumer(message, self.coordinates.shape)) != self.coordinates.rank:
                yield Rule.MESSAGE, f"never sends rank {to} the {_name(message)}"

    def _forward(self, action: Forward) -> Iterator[Broken]:
        key = action.stage, action.microbatch
        yield from self._on_its_rank(action.stage, action.microbatch)
        yield from self._fed(action)
        if key in self.forwards:
            yield Rule.ONCE, "runs a second time"
        if not 0 <= action.version <= self.steps[action.stage]:
            yield Rule.VERSION, f"reads a version, but only {self.steps[action.stage]} are made"
        if action.stage in self.apart:
            yield Rule.GROUP, f"comes before version {self.apart[action.stage]} is averaged"
        self.forwards[key] = action.version
        self._make(action)

    def _recompute(self, action: Recompute) -> Iterator[Broken]:
        key = action.stage, action.microbatch
        yield from self._on_its_rank(*key)
        shape = self.coordinates.shape
        if not shape.recompute or self._is_idle(action.stage):
            yield Rule.ONCE, "computes again what the forward has kept"
        if key in self.recomputed:
            yield Rule.ONCE, "runs a second time"
        if key in self.inputs:
            yield Rule.ORDER, "comes after its backward"
        yield from self._follows_its_forward(action)
        self.recomputed.add(key)

    def _backward(self, action: Backward | BackwardInput | BackwardWeight) -> Iterator[Broken]:
        key = action.stage, action.microbatch
        yield from self._on_its_rank(action.stage, action.microbatch)
        yield from self._fed(action)
        yield from self._follows_its_forward(action)
        shape = self.coordinates.shape
        if shape.recompute and not self._is_idle(action.stage) and key not in self.recomputed:
            yield Rule.ORDER, "comes before its forward is computed again"
        if isinstance(action, Backward | BackwardInput):
            if key in self.inputs:
                yield Rule.ONCE, "runs a second time"
            self.inputs.add(key)
        if isinstance(action, Backward | BackwardWeight):
            yield from self._weights(key)
        self._make(action)

    def _is_idle(self, stage: int) -> bool:
        """Does the backward of a stage do nothing?"""
        return not self.local and stage in self.coordinates.shape.one_way

    def _follows_its_forward(
        self, action: Recompute | Backward | BackwardInput | BackwardWeight
    ) -> Iterator[Broken]:
        read = self.forwards.get((action.stage, action.microbatch))
        if read is None:
            yield Rule.ORDER, "comes before its forward"
        elif self.consistent and read != action.version:
            yield Rule.VERSION, f"differs from its forward, which read {read}"
        elif not 0 <= action.version <= self.steps[action.stage]:
            yield Rule.VERSION, f"reads a version, but only {self.steps[action.stage]} are made"

    def _weights(self, key: tuple[int, int]) -> Iterator[Broken]:
        stage, microbatch = key
        if key in self.weights:
            yield Rule.ONCE, "adds its gradients a second time"
        if key not in self.inputs:
            yield Rule.ORDER, "comes before the input's half of the backward"
        self.weights.add(key)
        self.gradients[stage].add(microbatch)
        self.reduced.pop(stage, None)

    def _step(self, action: Step) -> Iterator[Broken]:
        stage = action.stage
        yield from self._placed(stage)
        applied = self.gradients.pop(stage, set())
        number = self.steps[stage]
        if number >= len(self.updates):
            yield Rule.UPDATE, f"is update {number + 1} of {len(self.updates)}"
        elif applied != set(self.updates[number]):
            wanted = _numbers(self.updates[number])
            yield Rule.UPDATE, f"applies microbatches {_numbers(applied)} instead of {wanted}"
        if action.version != number + 1:
            yield Rule.VERSION, f"should make version {number + 1}"
        reduced = self.reduced.pop(stage, None)
        if self.coordinates.replicas_here > 1 and reduced != action.version:
            yield Rule.GROUP, "applies gradients that the group has not reduced"
        if stage in self.apart:
            yield Rule.GROUP, f"comes before version {self.apart[stage]} is averaged"
        self.steps[stage] += 1
        if self.coordinates.shape.num_pipelines > 1:
            self.apart[stage] = action.version

    def _all_reduce(self, action: AllReduce) -> Iterator[Broken]:
        yield from self._placed(action.stage)
        group = self.coordinates.shape.group_of(action.stage, self.coordinates.pipeline)
        if action.group != group:
            yield Rule.GROUP, f"should reduce over ranks {_numbers(group)}"
        if action.stage in self.reduced:
            yield Rule.GROUP, "reduces gradients that are reduced already"
        self.reduced[action.stage] = action.version

    def _average(self, action: Average) -> Iterator[Broken]:
        yield from self._placed(action.stage)
        pipelines = self.coordinates.shape.sharing(self.coordinates.rank)
        if action.group != pipelines:
            yield Rule.GROUP, f"should average over ranks {_numbers(pipelines)}"
        if self.apart.pop(action.stage, None) != action.version:
            yield Rule.GROUP, f"averages version {action.version}, which no step has just made"

    def _send(self, action: Send) -> Iterator[Broken]:
        message = action.message
        if message not in self.made:
            yield Rule.ORDER, "sends what is not made yet"
        elif (to := consumer(message, self.coordinates.shape)) != action.to:
            yield Rule.RANK, f"should go to rank {to}"
        if message in self.sent:
            yield Rule.ONCE, "is sent a second time"
        self.sent.add(message)

    def _recv(self, action: Recv) -> Iterator[Broken]:
        message, shape = action.message, self.coordinates.shape
        first = 0 if message.flow is Flow.ACTIVATION else 1
        if not first <= message.stage < shape.num_stages - 1 + first:
            yield Rule.RANK, "crosses no cut between two stages"
        elif (source := producer(message, shape)) != action.source:
            yield Rule.RANK, f"should come from rank {source}"
        elif (to := consumer(message, shape)) != self.coordinates.rank:
            yield Rule.RANK, f"belongs to rank {to}"
        if message in self.here:
            yield Rule.ONCE, "is received a second time"
        self.here.add(message)

    def _on_its_rank(self, stage: int, microbatch: int) -> Iterator[Broken]:
        yield from self._placed(stage)
        shape = self.coordinates.shape
        if microbatch >= shape.num_microbatches:
            yield Rule.RANK, f"runs a microbatch beyond the {shape.num_microbatches} of the segment"
        elif (
            stage in self.coordinates.stages
            and shape.rank_of(stage, microbatch) != self.coordinates.rank
        ):
            yield Rule.RANK, f"runs a microbatch that rank {self.coordinates.rank} does not get"

    def _placed(self, stage: int) -> Iterator[Broken]:
        if stage not in self.coordinates.stages:
            yield Rule.RANK, f"touches a stage that rank {self.coordinates.rank} does not hold"

    def _fed(self, action: Compute) -> Iterator[Broken]:
        needed = needs(action, self.coordinates.shape)
        if needed and needed not in self.here:
            yield Rule.ORDER, f"needs the {_name(needed)}, which is not here"

    def _make(self, action: Compute) -> None:
        made = makes(action, self.coordinates.shape)
        if made:
            self.made.add(made)
            if consumer(made, self.coordinates.shape) == self.coordinates.rank:
                self.here.add(made)


def _name(message: Message) -> str:
    return f"{message.flow} of stage {message.stage}, microbatch {message.microbatch}"


def _numbers(numbers: tuple[int, ...] | set[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
