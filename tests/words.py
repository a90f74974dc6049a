"""Small tokenizers for tests, trained on the spot by the tokenizers library."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = (
    "the cat sat on the mat and the dog sat on the log",
    "a bird in the hand is worth two in the bush",
    "she sells sea shells by the sea shore",
    "how much wood would a wood chuck chuck",
    "to be or not to be that is the question",
    "all the world is a stage and all the men are players",
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_tokenizer(folder: Path, special: Sequence[str] = (), size: int = 300) -> Any:
    """As GPT-2's, with `<|endoftext|>` and the pad token; the files are in `folder`."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|endoftext|>", "<pad>", *special],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS, trainer)
    return _saved(made, folder, {"eos_token": "<|endoftext|>", "pad_token": "<pad>"})


def word_tokenizer(folder: Path) -> Any:
    """As BERT's: words, between [CLS] and [SEP], with [MASK]."""
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(
        TEXTS, trainers.WordLevelTrainer(special_tokens=names, show_progress=False)
    )
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = {name[1:-1].lower() + "_token": name for name in names}
    return _saved(made, folder, roles)


def _saved(made: Any, folder: Path, roles: dict[str, str]) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(roles))
    return made
