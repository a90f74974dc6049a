"""What a person asks of the planners: the question of a page, and its link."""

from dataclasses import dataclass, fields, replace
from typing import Any

from app.differences import fewest_words, target_words
from app.formats import seconds, size
from app.session.state import Param
from backend.cluster.cluster import Cluster
from backend.cluster.document import write_cluster
from backend.comparison.aims import Fewest
from backend.comparison.to_target import Target
from backend.pipeline.codecs.catalog import PLAIN
from backend.planning.optimizers import AVERAGED, OptimizerName
from backend.planning.savings import MemorySaving
from backend.prediction.imagined import OWN
from backend.prediction.question import Question
from backend.profiles.state_precision import STATE_PRECISIONS, StatePrecision
from backend.runs.events import ACCURACY
from backend.runs.profiles import StoredProfile

BEST, ALL = "best", "all"
USUAL = ("stored", "cluster", "planner", "schedule", "batch")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The fields of `Question` and of `Question.under`, of a profile that is kept.

    further   kept profiles of the same layers at other microbatch sizes
    memory    bytes of every device; None: as the cluster says
    device    a name of `backend.profiles.devices`, or `imagined.OWN`: the profile as that device
              would run it, from `measured_on`, in `precision`; "" for as it was measured
    took      seconds per microbatch of one pipeline on a device, and of each of two there
    run_ahead further microbatches in flight per hop; None: as many as simulation finds faster
    codec     of the messages between stages: a name of the catalog, "none" or "auto"
    sites     rule by which the cluster's sites exchange weights; "": one plan over all devices
    codec_of_sums  of the gradients of a stage's replicas; "": none
    split_channels  whether replicas split the linear and embedding layers that are faster so
    averaged  whether an average of the weights is kept beside
    target    plans are ranked by the time to it; None: by samples/s
    fewest    or by the energy or money of a sample
    """

    stored: StoredProfile
    cluster: Cluster
    planner: str = BEST
    schedule: str = ""
    batch: int = 4
    optimizer: OptimizerName = "momentum"
    memory: float | None = None
    recompute: MemorySaving = MemorySaving.AUTO
    shard_state: MemorySaving = MemorySaving.AUTO
    chunks: int = 2
    pipelines: int = 3
    took: tuple[float, float] | None = None
    further: tuple[StoredProfile, ...] = ()
    device: str = ""
    measured_on: str = ""
    precision: str = ""
    state_precision: StatePrecision = "float32"
    update_times: int = 1
    search_on: bool = False
    averaged: bool = False
    run_ahead: int | None = None
    target: Target | None = None
    fewest: Fewest | None = None
    codec: str = PLAIN
    sites: str = ""
    codec_of_sums: str = ""
    split_channels: bool = False

    @property
    def question(self) -> Question:
        """What is planned. Raises `InvalidInput`."""
        return Question(
            self.stored.profile,
            self.cluster,
            planner=self.planner,
            schedule=self.schedule,
            batch=self.batch,
            optimizer=self.optimizer + AVERAGED * self.averaged,
            recompute=self.recompute,
            shard_state=self.shard_state,
            chunks=self.chunks,
            pipelines=self.pipelines,
            update_times=self.update_times,
            search_on=self.search_on,
            run_ahead=self.run_ahead,
            codec=self.codec,
            sites=self.sites,
            codec_of_sums=self.codec_of_sums,
            split_channels=self.split_channels,
            further=tuple(kept.profile for kept in self.further),
        ).under(
            self.memory,
            self.device,
            self.measured_on,
            self.precision,
            self.took,
            self.state_precision,
        )

    @property
    def options(self) -> dict[str, Any]:
        """Everything beyond profile, cluster, planner, schedule and microbatches that is not as
        it is by default."""
        names = [field.name for field in fields(self) if field.name not in USUAL]
        default = Wanted(self.stored, self.cluster)
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value != getattr(default, name)}

    @property
    def params(self) -> dict[Param, object]:
        """The link that asks the same, what is asked by default included."""
        alone, together = self.took or (None, None)
        return {
            Param.PROFILE: self.stored.id,
            Param.CLUSTER: write_cluster(self.cluster),
            Param.PLANNER: self.planner or ALL,
            Param.SCHEDULE: self.schedule,
            Param.BATCH: self.batch,
            Param.OPTIMIZER: self.optimizer,
            Param.AVERAGED: str(self.averaged).lower(),
            Param.MEMORY: None if self.memory is None else f"{self.memory:.12g}",
            Param.RECOMPUTE: self.recompute.value,
            Param.SHARD_STATE: self.shard_state.value,
            Param.CHUNKS: self.chunks,
            Param.PIPELINES: self.pipelines,
            Param.UPDATE_TIMES: self.update_times,
            Param.RUN_AHEAD: None if self.run_ahead is None else str(self.run_ahead),
            Param.CODEC: None if self.codec == PLAIN else self.codec,
            Param.SITES: self.sites or None,
            Param.CODEC_OF_SUMS: self.codec_of_sums or None,
            Param.SPLIT_CHANNELS: str(self.split_channels).lower(),
            Param.SEARCH_ON: "1" if self.search_on else None,
            Param.TOOK_ALONE: alone,
            Param.TOOK_TOGETHER: together,
            Param.FURTHER: ",".join(str(kept.id) for kept in self.further),
            Param.DEVICE: self.device,
            Param.MEASURED_ON: self.measured_on,
            Param.DEVICE_PRECISION: self.precision,
            Param.STATE_PRECISION: self.state_precision,
            **_aim_params(self),
        }

    def by(self, planner: str, schedule: str, batch: int) -> "Wanted":
        """The same of another planner under another schedule."""
        return replace(self, planner=planner, schedule=schedule, batch=batch)


def _aim_params(wanted: Wanted) -> dict[Param, object]:
    target = wanted.target
    if target is None:
        if (fewest := wanted.fewest) is None:
            return {}
        return {Param.RANK_BY: fewest.figure.value, Param.FLOOR: f"{fewest.floor:.12g}"}
    is_share = target.metric == ACCURACY
    value = Param.TARGET if is_share else Param.TARGET_LOSS
    return {Param.RANK_BY: target.metric, value: f"{target.value:.12g}"}


def options_text(wanted: Wanted) -> str:
    """What is set beyond the usual inputs: "1 option set: recomputation always"."""
    said = [_said(wanted, name) for name in wanted.options]
    options = "option" if len(said) == 1 else "options"
    return f"{len(said)} {options} set: {', '.join(said)}" if said else ""


def _said(wanted: Wanted, name: str) -> str:
    match name:
        case "memory":
            return f"memory {size(wanted.memory)}"
        case "recompute":
            return f"recomputation {wanted.recompute}"
        case "shard_state":
            return f"sharded state {wanted.shard_state}"
        case "chunks":
            return f"{wanted.chunks} chunks"
        case "pipelines":
            return f"up to {wanted.pipelines} parallel pipelines"
        case "update_times":
            return f"updates of up to {wanted.update_times} times the samples"
        case "run_ahead":
            return f"run ahead {wanted.run_ahead}"
        case "codec":
            return f"codec {wanted.codec}"
        case "sites":
            return f"sites exchange by {wanted.sites}"
        case "codec_of_sums":
            return f"codec of sums {wanted.codec_of_sums}"
        case "split_channels":
            return "layers split by channels"
        case "search_on":
            return "longer search"
        case "took":
            alone, together = wanted.took or (0.0, 0.0)
            return f"pipelines took {seconds(alone)} and {seconds(together)}"
        case "further":
            sizes = (str(kept.profile.microbatch) for kept in wanted.further)
            return f"also microbatch {', '.join(sizes)}"
        case "state_precision":
            return f"state {STATE_PRECISIONS[wanted.state_precision].title}"
        case "averaged":
            return "averaged weights"
        case "target" if wanted.target:
            return f"ranked by the time to {target_words(wanted.target)}"
        case "fewest" if wanted.fewest:
            return f"ranked by {fewest_words(wanted.fewest)}"
        case "device":
            return f"as on {'the ' * (wanted.device == OWN)}{wanted.device}"
        case "measured_on":
            return f"measured on {wanted.measured_on}"
        case _:
            return str(getattr(wanted, name))
