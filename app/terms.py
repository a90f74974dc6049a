"""The terms of pipeline training as the pages explain them: on hover, and on the page Help."""

from enum import StrEnum


class Term(StrEnum):
    """A term by what it is called on the pages."""

    NOTATION = "15-1, 4-4-4-4"
    STAGE = "Stage"
    REPLICA = "Replica"
    MICROBATCH = "Microbatch"
    MINIBATCH = "Minibatch"
    ONE_F_ONE_B = "1F1B"
    TWO_BW = "2BW"
    GPIPE = "GPipe"
    FLUSH = "Flush"
    BUBBLE = "Bubble"
    IMBALANCE = "Imbalance"
    VERSIONS = "Weight versions"
    STALENESS = "Staleness"
    RECOMPUTATION = "Recomputation"
    SHARDED_STATE = "Sharded state"
    DATA_PARALLELISM = "Data parallelism"
    ALL_REDUCE = "All-reduce"
    CHUNK = "Chunk"
    RUN_AHEAD = "Run ahead"
    CODEC = "Codec"
    SPLIT_LAYER = "Split layer"
    LOCAL_LOSS = "Local loss"
    SITE = "Site"
    EMULATION = "Emulation"


TERMS: dict[Term, str] = {
    Term.NOTATION: "A partition, as replicas per stage: 15-1 has two stages, the first on 15 "
    "devices and the second on one. 4\u20114\u20114\u20114 has four stages on four devices each.",
    Term.STAGE: "Consecutive layers of the model that are placed together. Microbatches pass from "
    "stage to stage.",
    Term.REPLICA: "One of several devices with the same stage. Replicas share the microbatches and "
    "average their gradients.",
    Term.MICROBATCH: "The samples that pass through the pipeline together.",
    Term.MINIBATCH: "The samples that one replica brings to an update: a microbatch, or under "
    "schedules with batches a whole batch of them.",
    Term.ONE_F_ONE_B: "A schedule: each device alternates one forward and one backward, so few "
    "microbatches wait in memory (PipeDream, SOSP 2019).",
    Term.TWO_BW: "PipeDream-2BW (ICML 2021): 1F1B without a flush that keeps two versions of the "
    "weights. Gradients are one update late.",
    Term.GPIPE: "A schedule: all forwards of a batch, then all backwards, then one update (NeurIPS "
    "2019). Nothing is late, but the pipeline fills and drains at every update.",
    Term.FLUSH: "The pipeline drains before an update. Schedules with a flush train as one device "
    "would; schedules without one never wait for it.",
    Term.BUBBLE: "The share of device time that is spent waiting instead of computing.",
    Term.IMBALANCE: "How much longer the slowest stage computes than the mean stage, with the "
    "replicas of each stage counted.",
    Term.VERSIONS: "The versions of its weights that a stage keeps at the same time, so that a "
    "backward has the weights of its forward.",
    Term.STALENESS: "The number of updates between the weights that a gradient was computed with "
    "and those that it changes. 0 trains as one device would.",
    Term.RECOMPUTATION: "Activations are not kept: a forward runs again before its backward. Less "
    "memory, more compute.",
    Term.SHARDED_STATE: "Each replica keeps a part of the optimizer's state. Less memory, more "
    "communication (ZeRO).",
    Term.DATA_PARALLELISM: "Every device has the whole model and its own samples; gradients are "
    "averaged at every update.",
    Term.ALL_REDUCE: "The communication in which replicas sum their gradients.",
    Term.CHUNK: "One of several stages on the same device, under a schedule that interleaves: the "
    "pipeline fills sooner, and more is sent.",
    Term.RUN_AHEAD: "Further microbatches in flight for each hop between stages. Slow links are "
    "hidden, for more memory, and under PipeDream older weights.",
    Term.CODEC: "How a message between stages is made smaller, such as int8. Fewer bytes are sent, "
    "and what is read again is rounded.",
    Term.SPLIT_LAYER: "A layer of which each replica of its stage holds a part of the channels. "
    "Activations are exchanged, and the gradients of its weights are not summed.",
    Term.LOCAL_LOSS: "A loss of a stage's own, from which it learns without a gradient of the next "
    "stage. Nothing waits for a gradient; accuracy may be lower.",
    Term.SITE: "A part of a cluster behind slow links, with a whole pipeline and weights of its "
    "own, which meet those of other sites from time to time.",
    Term.EMULATION: "A run whose devices wait as long as the profile and the cluster say instead "
    "of computing, to try a plan on fewer machines.",
}
"""One or two sentences for each."""


def explained(*terms: Term) -> str:
    """The terms as Markdown for a hover: a paragraph each."""
    return "\n\n".join(f"**{term.value}**: {TERMS[term]}" for term in terms)
