"""A plan for DeepSpeed: where its `PipelineModule` cuts a list of layers."""

from backend.errors import InvalidInput
from backend.prediction.trainers.handover import Handover
from backend.prediction.trainers.modules import listed, loose_functions, units
from backend.prediction.trainers.python_file import python_file, rows

USE = """
    model = Planned(layers=layers, num_stages=NUM_STAGES, loss_fn=loss)  # one for each of LAYERS
    engine, *_ = deepspeed.initialize(model=model, config={**CONFIG, ...})
"""
CODE = '''

class Planned(PipelineModule):
    """A pipeline that is cut where the plan says, whatever `partition_method` says."""

    def _partition_layers(self, method="uniform"):
        if len(self._layer_specs) != PARTS[-1]:
            raise ValueError(f"{len(self._layer_specs)} layers, the plan is for {PARTS[-1]}")
        self.parts = list(PARTS)
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
'''


def deepspeed(plan: Handover) -> bytes:
    """A Python file: the layers by path, where each stage begins and ends, and a `PipelineModule`
    that is cut so. Raises `InvalidInput` for schedules that DeepSpeed does not have."""
    if plan.names.deepspeed is None:
        raise InvalidInput(
            f"DeepSpeed trains by one schedule, 1F1B with a flush, not by {plan.schedule!r}",
            "Plan under 1f1b-flush.",
        )
    placed = units(plan)
    counts = [sum(unit.stage < stage for unit in placed) for stage in range(len(plan.stages) + 1)]
    if len(set(counts)) < len(counts):
        raise InvalidInput(
            "a stage holds no module, functions alone", "Plan with cuts between modules."
        )
    config = [
        f"'train_micro_batch_size_per_gpu': {plan.samples}",
        f"'gradient_accumulation_steps': {plan.microbatches}",
        *(["'zero_optimization': {'stage': 1}"] if plan.shard_state else []),
    ]
    loose = loose_functions(plan)
    notes = [f"A layer hands on what later ones read: {skip}." for skip in plan.skips]
    if loose:
        notes += [f"Functions between modules belong into layers of your list: {listed(loose)}."]
    return python_file(
        "DeepSpeed",
        (*plan.heading, *notes),
        USE,
        "from deepspeed.pipe import PipelineModule\n",
        f"LAYERS = {rows([repr(unit.path) for unit in placed], '()')}",
        f"PARTS = {tuple(counts)!r}",
        f"NUM_STAGES = {len(plan.stages)}",
        f"CONFIG = {rows(config, '{}')}",
        code=CODE,
    )
