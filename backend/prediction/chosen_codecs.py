"""Which cuts are worth a codec: those over which coded messages are sooner read than plain ones.

What a codec does to learning is not weighed.
"""

from dataclasses import replace

from backend.pipeline.actions import Flow, Message
from backend.pipeline.codecs.catalog import AUTO, CODECS, codec
from backend.pipeline.shape import Shape
from backend.planning.plan import Plan
from backend.planning.work import SearchWork
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.run_ahead import NEAR
from backend.prediction.shapes import steady_shape
from backend.prediction.simulations import Simulations
from backend.profiles.profile import Profile
from backend.units import bytes_text, percent_text, seconds_text


def with_codecs(question: Question, found: Prediction, work: SearchWork) -> Prediction:
    """The plan that was `found`, with a codec at each cut where one is faster and the profile tells
    its speed, if the simulation of all of them is by a share of `NEAR`: less is not worth numbers
    that are rounded. As it is where the question names the codecs."""
    if question.codec != AUTO or question.like is not None:
        return found
    chosen = chosen_codecs(question, found.plan)
    if not any(chosen):
        return found
    coded = Simulations(question, work).predicted(replace(found.plan, codecs=chosen))
    return coded if coded.samples_per_second >= (1 + NEAR) * found.samples_per_second else found


def chosen_codecs(question: Question, plan: Plan) -> tuple[str, ...]:
    """Of each cut the codec with the fewest seconds there and back, "" where plain has."""
    cuts = range(len(plan.partition.stages) - 1)
    names = ["", *(name for name, each in CODECS.items() if each.is_close)]
    known = [name for name in names if not name or _is_known(question.at(plan.microbatch), name)]
    ways = {name: _ways(question, plan, name) for name in known}
    return tuple(min(known, key=lambda name: ways[name][cut]) for cut in cuts)


def _ways(question: Question, plan: Plan, name: str) -> list[float]:
    """Seconds over each cut there and back with one codec at all of them: coding, on the wire and
    reading, of a microbatch."""
    cuts = len(plan.partition.stages) - 1
    coded = replace(plan, codecs=(name,) * cuts if name else ())
    durations = PlanDurations.of(question.profile_of(plan), question.cluster, coded)
    shape = steady_shape(plan)
    return [sum(_way(durations, shape, cut, flow) for flow in Flow) for cut in range(cuts)]


def _way(durations: PlanDurations, shape: Shape, cut: int, flow: Flow) -> float:
    if not durations.partition.crosses(cut) or (flow is Flow.GRADIENT and durations.one_way[cut]):
        return 0.0
    here, there = shape.rank_of(cut, 0), shape.rank_of(cut + 1, 0)
    message = Message(flow, cut + (flow is Flow.GRADIENT), 0)
    messages = durations.cut_messages
    sender, receiver = (cut, cut + 1) if flow is Flow.ACTIVATION else (cut + 1, cut)
    coding = messages.sending(cut, flow) / durations.pace(sender)
    reading = messages.receiving(cut, flow) / durations.pace(receiver)
    ends = (here, there) if flow is Flow.ACTIVATION else (there, here)
    return coding + durations.transfer(message, *ends) + reading


def _is_known(profile: Profile, name: str) -> bool:
    return all(profile.coding_speed(name, flow) for flow in Flow)


def codec_reason(question: Question, plan: Plan) -> str:
    """What the codecs of a plan buy, beside plain messages, in a sentence; "" of a plain plan."""
    if not plan.codecs:
        return ""
    coded = question.predict(plan)
    plain = question.predict(replace(plan, codecs=()))
    gain = coded.samples_per_second / (plain.samples_per_second or 1.0) - 1
    named = [name for name in dict.fromkeys(plan.codecs) if name]
    titles = " and ".join(codec(name).title for name in named)
    ways = {name: _ways(question, plan, name) for name in ("", *named)}
    cut = max(
        (cut for cut, name in enumerate(plan.codecs) if name), key=lambda each: ways[""][each]
    )
    now, before = ways[plan.codecs[cut]][cut], ways[""][cut]
    more = "more" if gain >= 0 else "fewer"
    profile = question.profile_of(plan)
    unknown = [name for name in named if not _is_known(profile, name)]
    doubt = (
        " The seconds of coding are not in it: this profile does not tell them. Profile the model "
        "again."
        if unknown
        else ""
    )
    layer = (
        " What it leaves out belongs to the model as a layer does: evaluate the model with it."
        if any(codec(name).is_layer for name in named)
        else ""
    )
    messages = PlanDurations.of(profile, question.cluster, plan).cut_messages
    most = max(map(messages.kept_per_sample, range(len(plan.partition.stages))))
    kept = (
        f" The first epoch goes plain. A stage keeps up to {bytes_text(most)} of each training "
        f"sample, {bytes_text(10_000 * most)} of 10,000, which its memory above does not count."
        if most
        else ""
    )
    return (
        f"Messages are coded as {titles}: over the cut behind stage {cut} coding, sending and "
        f"reading take {seconds_text(now)} there and back instead of {seconds_text(before)}, "
        f"{percent_text(abs(gain))} {more} samples/s in all.{doubt}{layer}{kept}"
    )
