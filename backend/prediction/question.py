"""What planning is asked: the same value from a page, a command and a request."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from backend.cluster.cluster import Cluster, limited
from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import AUTO, PLAIN, check_wanted, codecs_of
from backend.pipeline.schedules.catalog import executable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.double_buffered import DOUBLE_BUFFERED
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.pipeline.shape_checks import MOST_RUN_AHEAD
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.planning.codec_of_sums import check_codec_of_sums, read_codec_of_sums
from backend.planning.optimizers import optimizer_named
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.planning.savings import MemorySaving, Savings
from backend.planning.sites import read_sites
from backend.planning.work import SearchWork, WorkSpent
from backend.prediction.imagined import as_on
from backend.prediction.limits import FURTHER, most_work
from backend.prediction.parallel_pipelines import gain_of_sharing, with_gain
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.same_updates import alike, goes_on_from
from backend.profiles.document import check_profile
from backend.profiles.profile import Profile
from backend.profiles.state_precision import StatePrecision
from backend.profiles.what_if import at_microbatch, kept_in

PLANNER_NAMES = (*PLANNERS, *SEARCHES)
OWN_SCHEDULES = {"pipedream-2bw": DOUBLE_BUFFERED.name}
"""Schedules of planners that were made for one; the others plan for PipeDream's."""
MOST_CHUNKS, MOST_PIPELINES = 16, 8
MOST_UPDATE_TIMES = 64
KEPT = 256
"""Predictions that a question remembers."""


@dataclass(frozen=True)
class Question:
    """What to plan, on which cluster, and what is given. Raises `InvalidInput`.

    planner    a name of `PLANNER_NAMES`; "" for all of them
    schedule   a name of the catalog; "" for the planner's own, and for any that `best` likes
    batch      microbatches per update of a schedule that updates once per batch
    update_times   how many times as many samples an update of such a schedule may take
    search_on      the search may do `FURTHER` times the work
    optimizer  whose state counts as memory
    recompute, shard_state   whether these ways to save memory are taken
    chunks     stages on a device under a schedule that interleaves
    pipelines  most parallel pipelines that AvgPipe puts on the same devices
    gain       what two pipelines on a device compute more than one (`gain_of_sharing`); 1: nothing
    further    profiles of the same layers at other microbatch sizes; else times are in proportion
    run_ahead  further microbatches in flight per hop; None: as many as simulation finds faster
    codec      of the messages between stages (`codecs_of`), or `AUTO`
    sites      rule between the cluster's sites (`read_sites`); "": one plan for all devices
    codec_of_sums  of the gradients of a stage's replicas (`read_codec_of_sums`); "": none
    split_channels  whether replicas split the layers that are faster so (linear and embedding)
    like       `best` answers with a plan by which a training by this one may go on
    """

    profile: Profile
    cluster: Cluster
    planner: str = "best"
    schedule: str = ""
    batch: int = 4
    optimizer: str = "momentum"
    recompute: MemorySaving = MemorySaving.AUTO
    shard_state: MemorySaving = MemorySaving.AUTO
    chunks: int = 2
    pipelines: int = 3
    gain: float = 1.0
    further: tuple[Profile, ...] = ()
    like: Plan | None = None
    update_times: int = 1
    search_on: bool = False
    run_ahead: int | None = None
    codec: str = PLAIN
    sites: str = ""
    codec_of_sums: str = ""
    split_channels: bool = False

    def __post_init__(self) -> None:
        for profile in (self.profile, *self.further):
            check_profile(profile)
        if self.planner and self.planner not in PLANNER_NAMES:
            known = ", ".join(PLANNER_NAMES)
            raise InvalidInput(f"no planner {self.planner!r}", f"Choose one of: {known}.")
        if self.schedule and not schedule_named(self.schedule).trains:
            raise InvalidInput(f"schedule {self.schedule!r} does not train", "Choose another one.")
        self._check_state()
        _within("batch", self.batch, 1, 2**31)
        _within("update_times", self.update_times, 1, MOST_UPDATE_TIMES)
        _within("chunks", self.chunks, 2, MOST_CHUNKS)
        self._check_schedule()
        check_wanted(self.codec)
        read_sites(self.sites)
        _within("pipelines", self.pipelines, 1, MOST_PIPELINES)
        names = [layer.name for layer in self.profile.layers]
        for profile in self.further:
            if [layer.name for layer in profile.layers] != names:
                raise InvalidInput(
                    f"profile {profile.name} has {len(profile.layers)} layers that are not those "
                    f"of {self.profile.name}",
                    "Give profiles of one model at other microbatch sizes.",
                )

    def _check_state(self) -> None:
        """Whether there is such an optimizer; one that needs whole matrices shares no state, nor
        does one whose sums are coded."""
        kind, coded = optimizer_named(self.optimizer), read_codec_of_sums(self.codec_of_sums)
        if coded is not None:
            check_codec_of_sums(coded, 2, self.shard_state is MemorySaving.ALWAYS)
        elif kind.is_elementwise:
            return
        elif self.shard_state is MemorySaving.ALWAYS:
            raise InvalidInput(
                f"{kind.title} reads whole matrices, of which a replica would have a part",
                "Leave sharding out: it keeps only a row and a column of each matrix.",
            )
        object.__setattr__(self, "shard_state", MemorySaving.NEVER)

    def _check_schedule(self) -> None:
        """Whether the schedule, where one is asked for, runs ahead, and has so many chunks."""
        _within("run_ahead", self.run_ahead or 0, 0, MOST_RUN_AHEAD)
        if self.schedule:
            schedule_named(self.schedule).check_run_ahead(self.run_ahead or 0)
            schedule_named(self.schedule).check_chunks(self.chunks)

    def under(
        self,
        memory: float | None = None,
        device: str = "",
        measured_on: str = "",
        precision: str = "",
        took: tuple[float, float] | None = None,
        state_precision: StatePrecision = "float32",
    ) -> "Question":
        """The same under other conditions. Raises `InvalidInput`.

        memory  bytes of every device
        device  its profiles as that device would run them, by its peaks in `precision`
        took    seconds per microbatch of one pipeline on a device, and of each of two there
        state_precision   in which a training keeps its weights and its optimizer's state
        """

        def carried(profile: Profile) -> Profile:
            there = as_on(profile, device, self.cluster.device, measured_on, precision)
            return kept_in(there, state_precision)

        return replace(
            self,
            profile=carried(self.profile),
            cluster=limited(self.cluster, memory),
            gain=gain_of_sharing(*took) if took else self.gain,
            further=tuple(map(carried, self.further)),
        )

    def with_memory(self, memory: float) -> "Question":
        """The same where every device has so many bytes."""
        return replace(self, cluster=limited(self.cluster, memory))

    @property
    def schedules(self) -> tuple[str, ...]:
        """The one that is asked for, or all that a run may use and a search tries."""
        if self.schedule:
            return (self.schedule,)
        found = [member.name for member in executable_schedules() if member.searched]
        return tuple(name for name in found if self.like is None or alike(name, self.like.schedule))

    def work(self, planner: str, stop: Callable[[], None] = lambda: None) -> SearchWork:
        """What a planner may do to answer it."""
        times = FURTHER if self.search_on else 1
        return SearchWork(most_work(planner, self.cluster.num_devices) * times, stop)

    @property
    def samples(self) -> int:
        """Those of an update of `batch` microbatches."""
        return self.batch * self.profile.microbatch

    @cached_property
    def sizes(self) -> tuple["Question", ...]:
        """The same with as many samples per update as are asked for, and as many as it may take."""
        if self.update_times == 1:
            return (self,)
        batches = self.batch, self.batch * self.update_times
        return tuple(replace(self, batch=batch, update_times=1) for batch in batches)

    def admits(self, plan: Plan) -> bool:
        """Whether a training by the plan that is given may go on by `plan`."""
        return self.like is None or goes_on_from(self.asked(plan), self.like)

    def plan(self, planner: str, partition: Partition) -> Plan:
        """`partition` under the schedule that is asked for, or its planner's own."""
        schedule = self.schedule or OWN_SCHEDULES.get(planner, PIPEDREAM.name)
        batch = self.batch if schedule_named(schedule).batched else 1
        return Plan(planner, partition, schedule, self.profile.microbatch, batch)

    @cached_property
    def _profiles(self) -> dict[int, Profile]:
        """By microbatch size, those in proportion as far as somebody asked for them."""
        return {each.microbatch: each for each in (*self.further[::-1], self.profile)}

    def at(self, microbatch: int) -> Profile:
        """The profile at that microbatch size: as measured, else in proportion."""
        if microbatch not in self._profiles:
            self._profiles[microbatch] = at_microbatch(self.profile, microbatch)
        return self._profiles[microbatch]

    def profile_of(self, plan: Plan) -> Profile:
        """The profile from which `plan` is predicted."""
        profile = self.at(plan.microbatch)
        return with_gain(profile, self.gain) if plan.shares_devices and self.gain > 1 else profile

    def predict(self, plan: Plan) -> Prediction:
        """What `plan` does, as it is. Raises as `backend.prediction.predict.predict`."""
        if known := self.known(plan):
            return known
        found = predict(self.profile_of(plan), self.cluster, plan, self.optimizer)
        if len(self._predicted) < KEPT:
            self._predicted[replace(plan, planner="")] = found
        return found

    def known(self, plan: Plan) -> Prediction | None:
        """The same where it was predicted before: several planners name the same plans."""
        found = self._predicted.get(replace(plan, planner=""))
        return replace(found, plan=plan) if found else None

    @cached_property
    def _predicted(self) -> dict[Plan, Prediction]:
        return {}

    @cached_property
    def answered(self) -> dict[str, Prediction | None]:
        """What each planner that was asked answered, by its name; None where it had no plan."""
        return {}

    @cached_property
    def ordered(self) -> dict[tuple[Plan, bool], Plan]:
        """Plans, and whether a V was tried too, with the order that was found for them."""
        return {}

    @cached_property
    def spent(self) -> dict[str, float]:
        """The work of each planner that was asked."""
        return {}

    def asked(self, plan: Plan) -> Plan:
        """`plan` as far ahead and coded as is asked for, or as the plan by which the training
        began. Raises `InvalidInput` where codecs are named for another number of cuts."""
        plan = self.coded(plan)
        wanted = self.like.run_ahead if self.like else self.run_ahead
        takes = schedule_named(plan.schedule).runs_ahead
        return replace(plan, run_ahead=wanted) if wanted is not None and takes else plan

    def coded(self, plan: Plan) -> Plan:
        """`plan` with the codecs that are asked for; as they are where these are to be chosen."""
        if self.like or self.codec_of_sums != AUTO:
            sums = self.like.codec_of_sums if self.like else read_codec_of_sums(self.codec_of_sums)
            plan = replace(plan, codec_of_sums=sums if max(plan.partition.replicas) > 1 else None)
        text = max(self.like.codecs, default="") if self.like else self.codec
        cuts = len(plan.partition.stages) - 1
        return plan if text == AUTO else replace(plan, codecs=codecs_of(text, cuts))

    @property
    def savings(self) -> tuple[Savings, ...]:
        """The ways to save memory that may be taken together, the fewest ways first."""
        every = (Savings(*ways) for ways in product(self.recompute.tries, self.shard_state.tries))
        return tuple(sorted(every, key=lambda each: each.recompute + each.shard_state))

    def fitting(self, plan: Plan) -> Prediction:
        """What `plan` does, saving memory where the question says so. Raises as `predict`."""
        return self.first_fitting(lambda savings: savings.of(plan))

    def first_fitting(self, plan: Callable[[Savings], Plan]) -> Prediction:
        """The prediction of `plan` as it saves the least memory, where that fits; else the fastest
        of those that fit."""
        least, *others = self.savings
        try:
            return self.predict(self.asked(plan(least)))
        except (PlanDoesNotFit, WorkSpent) as fault:
            found = [each for savings in others if (each := self._fitting(plan, savings))]
            if not found:
                raise fault
        return max(found, key=lambda each: each.samples_per_second)

    def _fitting(self, plan: Callable[[Savings], Plan], savings: Savings) -> Prediction | None:
        try:
            return self.predict(self.asked(plan(savings)))
        except (PlanDoesNotFit, WorkSpent):
            return None


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{name} is {value}", f"Give {name} {least} to {most}.")
