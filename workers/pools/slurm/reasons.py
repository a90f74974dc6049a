"""Why Slurm lets a job wait, and what people do about those that never start by themselves."""

from fnmatch import fnmatchcase

LESS = "Cancel the run, and ask for {what}: {why}."
BROKEN = (
    "Slurm holds the job because it could not start it. Look at its output, then "
    "`scontrol release {job}`, or cancel the run."
)
ADVICE = {
    "JobHeldUser": "The job is held; `scontrol release {job}` releases it.",
    "JobHeldAdmin": "An administrator of the cluster holds the job, and has to release it.",
    "JobHoldMaxRequeue": BROKEN,
    "*held*": BROKEN,
    "*HOLD": BROKEN,
    "SPECIAL_EXIT": BROKEN,
    "PartitionConfig": LESS.format(
        what="fewer machines, fewer devices of each, or less time",
        why="the partition does not have that much",
    ),
    "PartitionNodeLimit": LESS.format(
        what="fewer machines", why="the partition does not allow so many for one job"
    ),
    "PartitionTimeLimit": LESS.format(
        what="less time", why="the partition does not allow jobs that long"
    ),
    "BadConstraints": LESS.format(
        what="something else", why="no machine has all that the pool's options and the run ask for"
    ),
    "*PerJob*": LESS.format(
        what="less", why="an account's or a QOS's limit for one job is below it"
    ),
    "*NotAllowed": "The partition, account and QOS of the pool do not go together. Start the pool "
    "with others, or ask the cluster's administrators for the right.",
    "Invalid*": "The cluster does not know the pool's account or QOS. Start the pool with others "
    "(`sacctmgr show associations user=$USER` lists yours).",
    "PartitionDown": "The partition starts no jobs at present; ask the cluster's administrators.",
    "PartitionInactive": "The partition takes no jobs at present; ask the cluster's "
    "administrators.",
    "DependencyNeverSatisfied": "Cancel the run: what the job waits for cannot happen any more.",
}
"""By pattern of a reason, or of the state of a held job; the first that fits counts.
Reasons that pass by themselves are not here."""


def advice(reason: str, job: str) -> str:
    """For people, where `job` will not start by itself for this reason; "" where it may.
    Slurm adds particulars behind a comma."""
    word = reason.partition(",")[0]
    found = (text for pattern, text in ADVICE.items() if fnmatchcase(word, pattern))
    return next(found, "").format(job=job)
