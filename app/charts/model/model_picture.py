"""The picture of a model: layers and modules as boxes in rows, with what flows between them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace

from app.charts.groups import folds
from app.charts.model.layered import Edge, Point, layered
from app.charts.model.module_tree import Module, module_tree
from backend.profiles.profile import ModelGraph, Profile

WIDTH, HEIGHT = 196.0, 50.0
HEAD, MARGIN = 32.0, 14.0
"""Pixels: of a layer's box, and of an open module around its layers."""
WAY = (1.0, 0.0)
"""The size of the way into an open module, and out of it."""
Member = Module | int


@dataclass(frozen=True, slots=True)
class Box:
    """What is drawn at (x, y): a layer, or a module that is open or closed. `within` is the
    path of the open module around it, `level` how many there are."""

    member: Member
    is_open: bool
    within: str
    level: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class EdgePath:
    """What flows from box to box; `is_tie`: shared weights and nothing else. It begins at the
    way into the module that is drawn where it `enters`, and ends at the way out likewise."""

    points: tuple[Point, ...]
    is_tie: bool
    enters: bool = False
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Outer boxes before those within."""

    boxes: tuple[Box, ...]
    lines: tuple[EdgePath, ...]
    width: float
    height: float


def picture(profile: Profile, opened: Set[str]) -> Picture:
    """The model with these modules open (by their keys)."""
    root = tree_of(profile.graph)
    return _Drawer(profile.graph, opened).inside(root, 0)


def tree_of(graph: ModelGraph) -> Module:
    """Its modules, equal blocks in one where there are many layers."""
    return module_tree([layer.name for layer in graph.layers], folds(graph))


class _Drawer:
    """Draws modules from the inside out: an open module is one box to its surroundings, with
    one way in at the top and one way out at the bottom."""

    def __init__(self, graph: ModelGraph, opened: Set[str]) -> None:
        self.opened = opened
        alone = _ties_alone(graph)
        self.edges = {edge: edge in alone for edge in graph.edges}

    def inside(self, module: Module, level: int) -> Picture:
        """Its members below each other; the way out is below all of them."""
        parts = [self._member(member, module, level) for member in module.members]
        flows, end = self._flows(module), len(module.members) + 1
        deepest = set(range(1, end)) - {producer for producer, _ in flows}
        sizes = [WAY, *((part.width, part.height) for part in parts), WAY]
        drawing = layered(sizes, [*flows, *((member, end) for member in deepest)])
        lines = [
            EdgePath(drawing.routes[edge], is_tie, edge[0] == 0, edge[1] == end)
            for edge, is_tie in flows.items()
        ]
        boxes: list[Box] = []
        for part, (x, y) in zip(parts, drawing.places[1:-1], strict=True):
            moved = _moved(part, x, y)
            boxes += moved.boxes
            lines += moved.lines
        return Picture(tuple(boxes), tuple(lines), drawing.width, drawing.height)

    def _member(self, member: Member, within: Module, level: int) -> Picture:
        if not isinstance(member, Module) or member.key not in self.opened:
            box = Box(member, False, within.path, level, WIDTH, HEIGHT)
            return Picture((box,), (), WIDTH, HEIGHT)
        inner = self.inside(member, level + 1)
        top = HEAD - min(box.y for box in inner.boxes)
        width, height = max(inner.width + 2 * MARGIN, WIDTH), top + inner.height
        moved = _moved(inner, (width - inner.width) / 2, top)
        around = Box(member, True, within.path, level, width, height)
        lines = (_led_on(line, width, height) for line in moved.lines)
        return Picture((around, *moved.boxes), tuple(lines), width, height)

    def _flows(self, module: Module) -> dict[Edge, bool]:
        """Between its members by number, 0 and the last being the ways in and out; whether
        all that flows there are tied weights."""
        place = {
            layer: number
            for number, member in enumerate(module.members, start=1)
            for layer in _layers(member)
        }
        end = len(module.members) + 1
        found: dict[Edge, bool] = {}
        for (producer, consumer), is_tie in self.edges.items():
            edge = place.get(producer, 0), place.get(consumer, end)
            if edge[0] != edge[1] and edge != (0, end):
                found[edge] = found.get(edge, True) and is_tie
        return found


def _led_on(line: EdgePath, width: float, height: float) -> EdgePath:
    """A line through a way goes on to the middle of the module's border."""
    before = ((width / 2, 0.0),) if line.enters else ()
    after = ((width / 2, height),) if line.leaves else ()
    return EdgePath((*before, *line.points, *after), line.is_tie)


def _layers(member: Member) -> Iterable[int]:
    return range(member.first, member.stop) if isinstance(member, Module) else (member,)


def _ties_alone(graph: ModelGraph) -> set[Edge]:
    """Edges along which nothing but shared weights flows."""
    everything = Counter(_pairs((each.producer, each.readers) for each in graph.crossings))
    tied_weights = Counter(_pairs((tie.owner, tie.readers) for tie in graph.tied_weights))
    return {edge for edge, number in tied_weights.items() if number >= everything[edge]}


def _pairs(flows: Iterable[tuple[int, tuple[int, ...]]]) -> Iterator[Edge]:
    for producer, readers in flows:
        yield from ((producer, reader) for reader in readers)


def _moved(part: Picture, x: float, y: float) -> Picture:
    boxes = (replace(box, x=box.x + x, y=box.y + y) for box in part.boxes)
    lines = (
        replace(line, points=tuple((a + x, b + y) for a, b in line.points)) for line in part.lines
    )
    return replace(part, boxes=tuple(boxes), lines=tuple(lines))
