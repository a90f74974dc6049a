"""When each rank did what: measured above a thin ghost of what was predicted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import seconds, time_unit
from backend.pipeline.actions import Action, AllReduce, Average, Recv, Send, Step
from backend.pipeline.kinds import kind
from backend.pipeline.timeline import Span, Timeline

SEAM = "rgba(255, 255, 255, 0.55)"  # between neighbours of one hue
MAX_BARS = 5_000  # plotly draws this many in about a quarter of a second
MAX_LABELS = 40  # per rank


@dataclass(frozen=True, slots=True)
class Window:
    """Microbatches `first` up to, not including, `stop`."""

    first: int
    stop: int

    def holds(self, microbatch: int) -> bool:
        return self.first <= microbatch < self.stop


def num_microbatches(timeline: Timeline) -> int:
    """How many microbatches appear in the timeline."""
    return 1 + max(
        (m for span in timeline.spans if (m := microbatch(span.action)) >= 0), default=-1
    )


def microbatch(action: Action) -> int:
    """The microbatch that an action belongs to; -1 for those that serve a whole update."""
    match action:
        case Step() | AllReduce() | Average():
            return -1
        case Send(message=message) | Recv(message=message):
            return message.microbatch
        case _:
            return action.microbatch


@dataclass(frozen=True, slots=True)
class Stretch:
    """Spans that fall into `seconds` from the stretch's start, which is second 0. What had
    begun before starts below 0, what ends after it ends above `seconds`."""

    spans: tuple[Span, ...]
    seconds: float

    @property
    def num_ranks(self) -> int:
        return max((span.rank for span in self.spans), default=-1) + 1


def whole(timeline: Timeline) -> Stretch:
    """All of a timeline."""
    return Stretch(timeline.spans, max((span.end for span in timeline.spans), default=0.0))


def within(timeline: Timeline, window: Window) -> Stretch:
    """Everything that happens while the window's microbatches are worked on."""
    own = [s for s in timeline.spans if window.holds(microbatch(s.action)) and _busy(s)]
    if not own:
        return Stretch((), 0.0)
    origin, last = min(s.start for s in own), max(s.end for s in own)
    return Stretch(
        tuple(
            Span(s.rank, s.index, s.action, s.start - origin, s.end - origin)
            for s in timeline.spans
            if s.start < last and s.end > origin
        ),
        last - origin,
    )


def _busy(span: Span) -> bool:
    return not isinstance(span.action, Send | Recv)


def timeline(
    upper: Stretch, ghost: Stretch | None = None, rank_names: Sequence[str] = ()
) -> go.Figure:
    """Draw `upper` with `ghost` thin below it, on one axis from second 0.

    Hue is the kind of action, the label its microbatch; waiting is shaded. Ranks are rows,
    rank 0 on top, named by `rank_names` ("rank 0 · stage 0").
    """
    num_ranks = max(upper.num_ranks, ghost.num_ranks if ghost else 0)
    names = [*rank_names[:num_ranks]] or [f"rank {rank}" for rank in range(num_ranks)]
    row = 44 if ghost else 32
    drawing = figure(height=72 + row * max(num_ranks, 1))
    extent = max(upper.seconds, ghost.seconds if ghost else 0.0)
    factor, unit = time_unit(extent)
    main = _Lane(offset=-0.34 if ghost else -0.36, width=0.46 if ghost else 0.72)
    _waiting(drawing, upper, main, factor)
    _spans(drawing, upper, main, factor, ghostly=False)
    if ghost:
        _spans(drawing, ghost, _Lane(offset=0.17, width=0.17), factor, ghostly=True)
    drawing.update_layout(barmode="overlay", bargap=0)
    drawing.update_xaxes(
        ticksuffix=f" {unit}",
        range=[0, extent * factor * 1.01],
        showgrid=True,
        gridcolor=palette.GRID,
    )
    drawing.update_yaxes(
        tickvals=list(range(num_ranks)),
        ticktext=names,
        range=[num_ranks - 0.5, -0.5],
        showgrid=False,
        fixedrange=True,
    )
    return drawing


@dataclass(frozen=True, slots=True)
class _Lane:
    """Where in a rank's row a bar lies: from `offset` (row's middle is 0), `width` high."""

    offset: float
    width: float


def _spans(
    drawing: go.Figure, shown: Stretch, lane: _Lane, factor: float, *, ghostly: bool
) -> None:
    source = "predicted" if ghostly else ""
    num_bars = sum(map(_busy, shown.spans))
    labels = not ghostly and num_bars <= MAX_LABELS * shown.num_ranks
    for name, spans in _by_kind(shown.spans).items():
        colour = palette.COLOURS[name]
        thin = name == "send"
        drawing.add_bar(
            orientation="h",
            name=name,
            legendgroup=name,
            showlegend=not ghostly,
            base=[s.start * factor for s in spans],
            x=[s.seconds * factor for s in spans],
            y=[s.rank for s in spans],
            offset=lane.offset + (lane.width if thin else 0),
            width=0.07 if thin else lane.width,
            marker={
                "color": palette.faint(colour, 0.45) if ghostly else colour,
                "line": {"width": 0 if thin else 0.5, "color": SEAM},
            },
            text=[_label(s.action) for s in spans] if labels else None,
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            textfont={"color": palette.on(colour), "size": 10},
            hovertext=[_hover(s, source) for s in spans],
            hoverinfo="text",
        )


def _by_kind(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """Spans that take time, by the kind of action; waiting for a receive is drawn as a gap."""
    kinds: dict[str, list[Span]] = {}
    for span in spans:
        if span.seconds > 0 and not isinstance(span.action, Recv):
            kinds.setdefault(kind(span.action), []).append(span)
    return {name: kinds[name] for name in palette.COLOURS if name in kinds}


def _label(action: Action) -> str:
    return "" if isinstance(action, Send) or microbatch(action) < 0 else str(microbatch(action))


def _hover(span: Span, source: str) -> str:
    action = span.action
    lines = [f"<b>{kind(action)}</b>{' · ' + source if source else ''} · rank {span.rank}"]
    match action:
        case Send(message=message, to=to):
            lines.append(f"{message.flow} of microbatch {message.microbatch} to rank {to}")
        case Recv(message=message, source=sender):
            lines.append(f"{message.flow} of microbatch {message.microbatch} from rank {sender}")
        case AllReduce(stage=stage, group=group) | Average(stage=stage, group=group):
            lines.append(f"stage {stage}, {len(group)} ranks")
        case Step(stage=stage, version=version):
            lines.append(f"stage {stage}, makes version {version}")
        case _:
            lines.append(
                f"stage {action.stage}, microbatch {action.microbatch}, "
                f"weights version {action.version}"
            )
    lines.append(f"{seconds(span.seconds)}, from {seconds(span.start)} to {seconds(span.end)}")
    return "<br>".join(lines)


def _waiting(drawing: go.Figure, shown: Stretch, lane: _Lane, factor: float) -> None:
    gaps = _gaps(shown)
    drawing.add_bar(
        orientation="h",
        name="waiting",
        base=[start * factor for _, start, _ in gaps],
        x=[(end - start) * factor for _, start, end in gaps],
        y=[rank for rank, _, _ in gaps],
        offset=lane.offset,
        width=lane.width,
        marker={"color": palette.IDLE, "line": {"width": 0}},
        hovertext=[f"rank {rank} waits {seconds(end - start)}" for rank, start, end in gaps],
        hoverinfo="text",
    )


def _gaps(shown: Stretch) -> list[tuple[int, float, float]]:
    """(rank, start, end) of each stretch in which a rank has nothing to do."""
    gaps: list[tuple[int, float, float]] = []
    last = shown.seconds
    smallest = last / 2_000  # a sliver that no screen can show
    for rank in range(shown.num_ranks):
        now = 0.0
        for span in sorted(
            (s for s in shown.spans if s.rank == rank and _busy(s)),
            key=lambda s: s.start,
        ):
            if min(span.start, last) - now > smallest:
                gaps.append((rank, now, min(span.start, last)))
            now = max(now, span.end)
        if last - now > smallest:
            gaps.append((rank, now, last))
    return gaps
