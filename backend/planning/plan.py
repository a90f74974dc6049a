"""A plan: which layers form which stage, how often it is replicated, on which devices."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Annotated

from pydantic import Field

from backend.errors import InvalidInput, StageflowError
from backend.pipeline.chunk_placement import Placement, holder, stage_at
from backend.pipeline.kept_order import KeptOrder
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.shape import Shape
from backend.pipeline.shape_checks import check_shares
from backend.pipeline.shares import Shares, pattern, shares_text
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.sites import Sites

LONG_LABEL = 32
"""Letters that a cell of a table has room for: 16 stages of one device."""


class PlanDoesNotFit(StageflowError):
    """No plan, or not this plan, fits the cluster; the message names the numbers."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers `first` up to, not including, `stop`; one replica on each of `devices`, which take so
    many microbatches of a round as their `shares` say, () = one each."""

    first: int
    stop: int
    devices: tuple[int, ...]
    shares: Shares = ()

    @property
    def replicas(self) -> int:
        return len(self.devices)

    @property
    def parts(self) -> tuple[Fraction, ...]:
        """Of all microbatches what each replica takes."""
        shares = self.shares or (1,) * self.replicas
        return tuple(Fraction(own, sum(shares)) for own in shares)


@dataclass(frozen=True)
class Partition:
    """The stages, input first. They cover the layers without a gap and share no device, but
    with `chunks` > 1: then stage s + p sits on the devices of stage s, where p is the number of
    pipeline ranks, or as a V (`placement`) stage 2p - 1 - s does.

    `order` names the profile's layers in the order that the stages count in, where that is
    not the profile's own (`Profile.in_order`). Raises `InvalidInput` otherwise.
    """

    stages: tuple[Stage, ...]
    order: tuple[int, ...] = ()
    chunks: int = 1
    placement: Placement = Placement.ROUND_ROBIN

    def __post_init__(self) -> None:
        if self.chunks < 1 or len(self.stages) % self.chunks:
            raise InvalidInput(f"{len(self.stages)} stages are not whole chunks of {self.chunks}")
        stop = 0
        devices: set[int] = set()
        for number, stage in enumerate(self.stages):
            if stage.first != stop or stage.stop <= stage.first:
                raise InvalidInput(
                    f"stage {number} holds layers {stage.first}..{stage.stop - 1}, "
                    f"but the next free layer is {stop}"
                )
            if number >= self.pipeline_size:
                holds = self.stages[self.pipeline_rank_of(number)]
                if stage.devices != holds.devices:
                    raise InvalidInput(
                        f"stage {number} is on devices {stage.devices}, but its pipeline rank has "
                        f"{holds.devices}"
                    )
            elif not stage.devices or devices & set(stage.devices):
                raise InvalidInput(f"stage {number} has no device of its own: {stage.devices}")
            stop = stage.stop
            devices |= set(stage.devices)
        if not self.stages:
            raise InvalidInput("a partition needs at least one stage")
        check_shares(self.shares, self.replicas, self.chunks == 1)
        if self.order and sorted(self.order) != list(range(stop)):
            raise InvalidInput(f"the order does not name each of the {stop} layers once")

    @property
    def pipeline_size(self) -> int:
        """Places in the pipeline: as many as stages, or fewer where it interleaves."""
        return len(self.stages) // self.chunks

    def pipeline_rank_of(self, stage: int) -> int:
        """The place in the pipeline that holds stage number `stage`."""
        return self._holders[stage]

    @cached_property
    def _holders(self) -> tuple[int, ...]:
        size = self.pipeline_size
        return tuple(int(holder(self.placement, stage, size)) for stage in range(len(self.stages)))

    def held_by(self, pipeline_rank: int) -> tuple[int, ...]:
        """The numbers of the stages at a place in the pipeline, ascending."""
        size = self.pipeline_size
        each = (stage_at(self.placement, c, pipeline_rank, size) for c in range(self.chunks))
        return tuple(map(int, each))

    def crosses(self, cut: int) -> bool:
        """Whether messages cross from rank to rank over the cut behind stage `cut`: not behind the
        last one, nor where the next stage is on the same devices."""
        is_cut = 0 <= cut < len(self.stages) - 1
        return is_cut and self.pipeline_rank_of(cut) != self.pipeline_rank_of(cut + 1)

    def placed(self, placement: Placement) -> "Partition":
        """The same stages, their chunks placed otherwise on the same devices."""
        if self.chunks == 1 or placement is self.placement:
            return self
        size = self.pipeline_size
        stages = (
            replace(stage, devices=self.stages[int(holder(placement, number, size))].devices)
            for number, stage in enumerate(self.stages)
        )
        return replace(self, stages=tuple(stages), placement=placement)

    @property
    def replicas(self) -> tuple[int, ...]:
        """Ranks at each pipeline rank."""
        return tuple(stage.replicas for stage in self.stages[: self.pipeline_size])

    @property
    def shares(self) -> tuple[Shares, ...]:
        """Of the replicas of each stage; () where all are equal."""
        own = tuple(stage.shares for stage in self.stages)
        return own if any(own) else ()

    def rank_devices(self, num_pipelines: int, apart: int) -> tuple[int, ...]:
        """The device of each rank of pipelines by this partition, of which each begins `apart`
        devices behind the one before."""
        placed = self.stages[: self.pipeline_size]
        own = tuple(chain.from_iterable(stage.devices for stage in placed))
        if num_pipelines == 1:
            return own
        return tuple(device + apart * n for n in range(num_pipelines) for device in own)

    def sharing(self, shares: tuple[Shares, ...]) -> "Partition":
        """The same with such shares of each stage's replicas, () for equal ones."""
        if not shares and not self.shares:
            return self
        every = zip(self.stages, shares or ((),) * len(self.stages), strict=True)
        return replace(self, stages=tuple(replace(stage, shares=own) for stage, own in every))

    @property
    def rounds(self) -> tuple[int, ...]:
        """Microbatches after which the replicas at each pipeline rank are in turn again."""
        if not self.shares:
            return self.replicas
        return tuple(len(pattern(s.shares)) if s.shares else s.replicas for s in self.stages)

    @property
    def num_devices(self) -> int:
        return sum(self.replicas)

    @property
    def label(self) -> str:
        """Replicas per stage, the literature's short form: "15-1", "1-1-1-1", and of unequal ones
        their shares: "2(2:1)-1"."""
        counts = map(str, self.replicas)
        if not self.shares:
            return "-".join(counts)
        named = (f"({shares_text(own)})" if own else "" for own in self.shares)
        return "-".join(map("".join, zip(counts, named, strict=True)))

    @property
    def short_label(self) -> str:
        """The same for a cell of a table: of very many stages their number."""
        label, each = self.label, set(self.replicas)
        if len(label) <= LONG_LABEL:
            return label
        return f"{len(self.replicas)} stages" + (f" of {each.pop()}" if len(each) == 1 else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """A partition with catalog names of its planner and of its schedule, which will run it.

    microbatch     samples of each
    batch          microbatches per weight update (1 for schedules that never flush)
    recompute      forwards keep their inputs alone and run once more before the backward
    num_pipelines  whole pipelines with weights of their own
    sites          what they exchange and how far apart they are; None: elastically, on one device
    advance        forwards that AFP runs ahead of 1F1B per later pipeline rank
    run_ahead      further microbatches in flight per hop, under a schedule that never drains
    codecs         names of what codes messages over the cut behind each stage; () = all go plain
    kept_order     what each rank computes in a batch, under a schedule without a rule
    shard_state    each replica keeps a part of its stage's state, and updates that part (ZeRO-1)
    codec_of_sums  what codes the gradients that replicas of a stage sum; None: they go plain
    splits         layers that replicas split by channels; they copy the others
    """

    planner: str
    partition: Partition
    schedule: str
    microbatch: int
    batch: int = 1
    recompute: bool = False
    num_pipelines: Annotated[int, Field(alias="lanes")] = 1
    advance: int = 1
    shard_state: bool = False
    run_ahead: int = 0
    codecs: tuple[str, ...] = ()
    sites: Sites | None = None
    kept_order: KeptOrder = ()
    codec_of_sums: CodecOfSums | None = None
    splits: tuple[LayerSplit, ...] = ()

    def shape(self, num_microbatches: int, batch: int = 0) -> Shape:
        """That of a segment, in updates of `batch` microbatches (0: the plan's). Raises
        `InvalidInput` where the counts cannot be shared evenly."""
        return Shape(
            self.partition.replicas,
            num_microbatches,
            batch or self.batch,
            chunks=self.partition.chunks,
            advance=self.advance,
            num_pipelines=self.num_pipelines,
            recompute=self.recompute,
            run_ahead=self.run_ahead,
            placement=self.partition.placement,
            shares=self.partition.shares,
            apart=self.is_apart,
            kept_order=self.kept_order,
        )

    @property
    def is_apart(self) -> bool:
        """Whether its pipelines have devices of their own."""
        return self.sites is not None and self.sites.devices > 0

    @property
    def num_sites(self) -> int:
        """Pipelines with devices of their own."""
        return self.num_pipelines if self.is_apart else 1

    @property
    def shares_devices(self) -> bool:
        """Whether several pipelines are on the same devices."""
        return self.num_pipelines > self.num_sites

    @property
    def exchange_copies(self) -> int:
        """Copies of the weights kept for exchanges; of AvgPipe's, pipelines share one."""
        if self.num_pipelines == 1 or self.sites is None:
            return int(self.num_pipelines > 1)
        return self.sites.kind.copies * self.num_pipelines // self.num_sites

    @property
    def devices(self) -> tuple[int, ...]:
        """The device of each rank: by pipeline, by pipeline rank, by replica (`Shape`)."""
        apart = self.sites.devices if self.sites else 0
        return self.partition.rank_devices(self.num_pipelines, apart)

    def under(self, schedule: str, batch: int) -> "Plan":
        """The same under another schedule: with `batch` microbatches per update where that has
        batches, as far ahead where it runs ahead, and with the shares where it takes them."""
        rule, partition = schedule_named(schedule), self.partition
        if rule.placement:
            partition = partition.placed(rule.placement_of(partition.chunks))
        return replace(
            self,
            partition=partition if rule.takes_shares else partition.sharing(()),
            schedule=schedule,
            batch=batch if rule.batched else 1,
            kept_order=self.kept_order if (schedule, batch) == (self.schedule, self.batch) else (),
            run_ahead=self.run_ahead if rule.runs_ahead else 0,
        )

    @property
    def pipelines_words(self) -> str:
        """How many there are, and what they exchange by: "2 sites (diloco:every=20)"."""
        by = f" ({self.sites.words})" if self.sites else ""
        return f"{self.num_pipelines} {self.pipeline_word}s{by}"

    @property
    def pipeline_word(self) -> str:
        """What people call one of them."""
        return "site" if self.is_apart else "pipeline"

    @property
    def label(self) -> str:
        return f"{self.partition.label} · {self.schedule}"

    @property
    def short_label(self) -> str:
        return f"{self.partition.short_label} · {self.schedule}"
