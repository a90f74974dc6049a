"""Every form in which a plan is handed to another trainer, beside those of its program."""

from collections.abc import Callable
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.exchange.forms import FORMS, ProgramFormat
from backend.planning.plan import Plan
from backend.prediction.trainers.deepspeed import deepspeed
from backend.prediction.trainers.handover import Handover, handover
from backend.prediction.trainers.megatron import megatron
from backend.prediction.trainers.torch_pipelining import torch_pipelining
from backend.prediction.trainers.torchtitan import torchtitan
from backend.profiles.profile import Profile

PYTHON, SHELL = "text/x-python; charset=utf-8", "text/x-shellscript; charset=utf-8"


@dataclass(frozen=True, slots=True)
class TrainerFormat:
    """`write` raises `InvalidInput` with what the trainer cannot be told."""

    name: str
    title: str
    suffix: str
    media: str
    write: Callable[[Handover], bytes]

    def of(self, profile: Profile, plan: Plan) -> bytes:
        """The file of a plan. Raises likewise."""
        return self.write(handover(profile, plan))


PlanFormat = ProgramFormat | TrainerFormat
TRAINERS: dict[str, TrainerFormat] = {
    form.name: form
    for form in (
        TrainerFormat(
            "torch",
            "Python: torch.distributed.pipelining",
            "-torch.py",
            PYTHON,
            torch_pipelining,
        ),
        TrainerFormat("torchtitan", "Python: torchtitan", "-torchtitan.py", PYTHON, torchtitan),
        TrainerFormat("megatron", "Shell: Megatron-Core", "-megatron.sh", SHELL, megatron),
        TrainerFormat("deepspeed", "Python: DeepSpeed", "-deepspeed.py", PYTHON, deepspeed),
    )
}
PLAN_FORMS: dict[str, PlanFormat] = {**FORMS, **TRAINERS}


def plan_form(name: str) -> PlanFormat:
    """Raises `InvalidInput` where there is none of that name."""
    if name not in PLAN_FORMS:
        raise InvalidInput(
            f"no form {name[:100]!r} of plans", f"Choose one of: {', '.join(PLAN_FORMS)}."
        )
    return PLAN_FORMS[name]
