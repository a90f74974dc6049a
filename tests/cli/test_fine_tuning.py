"""A language model fine-tuned by the commands alone, beside a loop of plain PyTorch.

Given weights, LoRA, a tokenizer, a cosine rate with warm-up, evaluations every 50 updates,
patience, the best checkpoint, resumed with another rate, the result opened by transformers.
"""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    get_cosine_schedule_with_warmup,
)

from tests.cli.conftest import Command
from tests.words import TEXTS, byte_tokenizer
from workers.definitions.loader import load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
CONFIG = GPT2Config(
    vocab_size=300,
    n_embd=16,
    n_layer=2,
    n_head=2,
    n_positions=40,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    bos_token_id=0,
    eos_token_id=0,
    initializer_range=0.4,
    use_cache=False,
)
LORA = {"lora": 4, "lora_alpha": 8.0}
LINES = [{"prompt": f"{n} of", "completion": f" {text[:18]}"} for n in range(20) for text in TEXTS]
LENGTH, MICROBATCH, BATCH, WARM_UP, PER_EPOCH = 32, 4, 2, 10, 12
RATE, EPOCHS, FURTHER_RATE, FURTHER_EPOCHS = 0.02, 5, 0.005, 6


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder as `save_pretrained` leaves it, with its tokenizer, beside the texts."""
    folder = tmp_path / "data" / "base"
    byte_tokenizer(folder)
    torch.manual_seed(5)
    GPT2LMHeadModel(CONFIG).save_pretrained(folder)
    (tmp_path / "data" / "talk.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


class Beside(nn.Module):
    """A layer with a product beside it that learns, as anybody writes it."""

    def __init__(self, layer: nn.Module, down: torch.Tensor, up: torch.Tensor) -> None:
        super().__init__()
        self.layer, self.down, self.up = layer, nn.Parameter(down), nn.Parameter(up)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = LORA["lora_alpha"] / LORA["lora"]
        return self.layer(x) + (x @ self.down.T) @ self.up.T * scale


class PlainLoop:
    """Torch and transformers alone; the first values of the adapters are the product's."""

    def __init__(self, base: Path) -> None:
        self.model = GPT2LMHeadModel.from_pretrained(base).requires_grad_(False)
        first = load(base / "config.json", LORA).model(0).state_dict()
        for number, block in enumerate(self.model.transformer.h):
            for place in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
                part, name = place.split(".")
                key, owner = f"transformer.h.{number}.{part}.{name}", getattr(block, part)
                values = [first[f"{key}.lora_{each}.weight"].clone() for each in "AB"]
                setattr(owner, name, Beside(getattr(owner, name), *values))
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, RATE, weight_decay=0.0)
        self.words = PreTrainedTokenizerFast.from_pretrained(base)
        order = torch.randperm(len(LINES), generator=torch.Generator().manual_seed(0))
        count = len(LINES) // 5
        self.kept, self.lines = order[:count].sort().values, order[count:].sort().values
        self.updates = 0

    def train(self, epochs: int, rate: float) -> Iterator[int]:
        """The number of updates after each epoch, and after each fiftieth update."""
        idle = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], rate)
        schedule = get_cosine_schedule_with_warmup(idle, WARM_UP, epochs * PER_EPOCH)
        while self.updates < epochs * PER_EPOCH:
            number, place = divmod(self.updates, PER_EPOCH)
            generator = torch.Generator().manual_seed(number)
            order = self.lines[torch.randperm(len(self.lines), generator=generator)]
            groups = order.split(MICROBATCH)[place * BATCH :][:BATCH]
            self.optimizer.param_groups[0]["lr"] = rate * schedule.lr_lambdas[0](self.updates)
            self.optimizer.zero_grad()
            for group in groups:
                (self.loss(group) / BATCH).backward()
            self.optimizer.step()
            self.updates += 1
            if self.updates % PER_EPOCH == 0 or self.updates % 50 == 0:
                yield self.updates

    def loss(self, numbers: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
        inputs, labels = map(torch.tensor, zip(*map(self.sample, numbers.tolist()), strict=True))
        scores = self.model(inputs).logits[:, :-1]
        return nn.functional.cross_entropy(
            scores.flatten(0, 1), labels[:, 1:].flatten(), reduction=reduction
        )

    def sample(self, number: int) -> tuple[list[int], list[int]]:
        """Tokens and labels as transformers has them: the prompt and padding do not count."""
        prompt, answer = LINES[number].values()
        asked = self.words(prompt)["input_ids"]
        whole = [*self.words(prompt + answer)["input_ids"], 0]
        assert whole[: len(asked)] == asked
        missing = LENGTH - len(whole)
        labels = [-100] * len(asked) + whole[len(asked) :] + [-100] * missing
        return whole + [1] * missing, labels

    def perplexity(self) -> float:
        with torch.no_grad():
            total = float(self.loss(self.kept, "sum"))
        counted = sum(label >= 0 for n in self.kept.tolist() for label in self.sample(n)[1])
        return math.exp(total / counted)

    def state(self) -> tuple[int, Any]:
        return self.updates, copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))

    def restore(self, state: tuple[int, Any]) -> None:
        self.updates, (weights, moments) = state
        self.model.load_state_dict(weights)
        self.optimizer.load_state_dict(copy.deepcopy(moments))

    def weights(self) -> dict[str, torch.Tensor]:
        """With the products added to their layers."""
        found = {}
        for name, weight in self.model.state_dict().items():
            if name.endswith((".down", ".up")):
                continue
            if ".layer.weight" in name:
                beside = self.model.get_submodule(name.removesuffix(".layer.weight"))
                weight = weight + 2 * (beside.up @ beside.down).T
            found[name.replace(".layer.", ".")] = weight.detach()
        return found


def told(run: dict) -> dict[int, float]:
    """Perplexities by the number of updates."""
    return {point["step"] + 1: point["value"] for point in run["metrics"]["perplexity"]}


def written(model: Any, words: Any) -> list[str]:
    """What it goes on with, greedily."""
    asked = [words(f"{n} of", return_tensors="pt")["input_ids"] for n in (3, 12, 99)]
    more = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 1, "use_cache": False}
    return [words.decode(model.generate(each, **more)[0]) for each in asked]


def test_fine_tuned_resumed_and_opened(
    stageflow: Command, database: None, base: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_DATA", str(base.parent))
    settings = [f"--set={name}={value:g}" for name, value in {**LORA, "length": LENGTH}.items()]
    config = str(base / "config.json")
    profile = stageflow("profile", config, "--batch", str(MICROBATCH), *settings, "--json").json
    names = [layer["name"] for layer in profile["profile"]["graph"]["layers"]]
    cut = f"{names.index('transformer.h.1')}x1-{len(names)}x1"
    plan = stageflow(
        *f"plan --profile {profile['id']} --devices 2 --schedule 1f1b-flush --save --json".split(),
        *("--microbatches", str(BATCH), "--cut", cut),
    ).json
    run = stageflow(
        *f"run --plan {plan['plan_id']} --epochs {EPOCHS} --data jsonl:talk.jsonl".split(),
        *f"--tokenizer base --length {LENGTH} --answers-only".split(),
        *"--weights node:base --weights-partial --optimizer adamw --decay cosine".split(),
        *f"--lr {RATE} --warm-up-updates {WARM_UP} --evaluate 50 --patience 3".split(),
        *"--watch perplexity --keep-best --json".split(),
    ).json
    assert len(run["plan"]["partition"]["stages"]) == 2

    loop, kept, expected = PlainLoop(base), {}, {}
    for updates in loop.train(EPOCHS, RATE):
        kept[updates], expected[updates] = loop.state(), loop.perplexity()
    assert told(run) == pytest.approx(expected, rel=1e-4)
    best = min(expected, key=lambda updates: expected[updates])

    more = f"resume {run['id']} --best --lr {FURTHER_RATE} --epochs {FURTHER_EPOCHS} --json"
    resumed = stageflow(*more.split()).json
    loop.restore(kept[best])
    expected = {updates: value for updates, value in expected.items() if updates <= best}
    for updates in loop.train(FURTHER_EPOCHS, FURTHER_RATE):
        expected[updates] = loop.perplexity()
    assert told(resumed) == pytest.approx(expected, rel=1e-4)

    done = stageflow("export", str(resumed["id"]), "--format", "model", "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    opened, loading = AutoModelForCausalLM.from_pretrained(
        tmp_path / "out", output_loading_info=True
    )
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    weights = opened.state_dict()
    for name, weight in loop.weights().items():
        assert torch.allclose(weights[name], weight, atol=1e-5), name
    words = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert written(opened, words) == written(loop.model, loop.words)
