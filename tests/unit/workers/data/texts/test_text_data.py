"""Tokens, labels and masks beside transformers' own, and what is refused."""

import json
from pathlib import Path

import pytest
import torch
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from backend.runs.request.spec import DataSpec
from backend.runs.request.text_spec import TextSpec
from tests.words import TEMPLATE, TEXTS, word_tokenizer
from workers.data.catalog import load
from workers.data.drawn import generator_of, of_epoch
from workers.data.errors import DataFailed
from workers.data.texts.token_splits import HiddenTokens
from workers.definitions.loader import load as load_definition

LINES = [{"text": text} for text in TEXTS]
IGNORED = -100
CHAT = [
    {"role": "user", "content": "who sat"},
    {"role": "assistant", "content": "the cat"},
    {"role": "user", "content": "where"},
    {"role": "assistant", "content": "on the mat"},
]
BY_NAME = (
    "{{'input_ids': torch.zeros(n, 8, dtype=torch.long), {more}}}, "
    "torch.zeros(n, 8, dtype=torch.long)"
)


def everything(part):
    numbers = torch.arange(len(part))
    return part.inputs(numbers), part.targets(numbers)


def test_causal_labels_are_transformers_own_one_token_earlier(loaded, tmp_path: Path) -> None:
    own = PreTrainedTokenizerFast.from_pretrained(tmp_path / "words")
    collate = DataCollatorForLanguageModeling(own, mlm=False)
    inputs, targets = everything(loaded(LINES, length=64).train)
    texts = [own(text + own.eos_token)["input_ids"] for text in TEXTS]
    theirs = collate([{"input_ids": text} for text in texts])
    size = theirs["input_ids"].shape[1]
    assert torch.equal(inputs[:, :size], theirs["input_ids"])
    assert torch.equal(targets[:, : size - 1], theirs["labels"][:, 1:])
    assert (targets[:, size - 1 :] == IGNORED).all()
    assert (inputs[:, size:] == own.pad_token_id).all()


def test_hidden_tokens_are_those_of_transformers_collator(loaded, tmp_path: Path) -> None:
    """Drawn by the same generator the two agree token by token; special ones are never drawn."""
    word_tokenizer(tmp_path / "bert")
    example = BY_NAME.format(more="'attention_mask': torch.ones(n, 8)")
    data = loaded(LINES, example, words="bert", task="masked", masked=0.3, length=16)
    part = of_epoch(data.train, 5, 2)
    assert isinstance(part, HiddenTokens)
    own = PreTrainedTokenizerFast.from_pretrained(tmp_path / "bert")
    collate = DataCollatorForLanguageModeling(own, mlm_probability=0.3, seed=1)
    inputs, targets = everything(part)
    for number, text in enumerate(TEXTS):
        collate.generator = generator_of(5, 2, number)
        tokens = torch.tensor([own(text)["input_ids"]])
        told, labels = collate.torch_mask_tokens(tokens.clone())
        assert (labels != IGNORED).any()
        size = tokens.shape[1]
        assert torch.equal(inputs["input_ids"][number, :size], told[0])
        assert torch.equal(targets[number, :size], labels[0])
        assert inputs["attention_mask"][number].tolist() == [1.0] * size + [0.0] * (16 - size)
        assert (targets[number, size:] == IGNORED).all()


def test_other_tokens_are_hidden_in_every_epoch_in_the_shares_of_bert(
    loaded, tmp_path: Path
) -> None:
    word_tokenizer(tmp_path / "bert")
    part = loaded(LINES * 20, words="bert", task="masked", length=16).train
    epochs = [everything(of_epoch(part, 1, number)) for number in range(12)]
    assert not torch.equal(epochs[0][1], epochs[1][1])
    assert torch.equal(epochs[0][1], everything(of_epoch(part, 1, 0))[1])
    assert torch.equal(everything(part)[1], everything(part)[1])
    inputs, targets = (torch.cat([e[n] for e in epochs]) for n in (0, 1))
    chosen = targets != IGNORED
    assert chosen.any(1).all()
    whole = sum(len(text.split()) for text in TEXTS) * 20 * 12
    assert float(chosen.sum()) / whole == pytest.approx(0.165, abs=0.02)
    hidden = (inputs[chosen] == 4).float().mean()
    assert hidden.item() == pytest.approx(0.8, abs=0.03)
    same = (inputs[chosen] == targets[chosen]).float().mean()
    assert same.item() == pytest.approx(0.1, abs=0.03)
    assert not torch.isin(targets[chosen], torch.tensor([0, 2, 3])).any()


def test_packed_texts_are_kept_apart_where_the_model_is_told(loaded) -> None:
    more = "'attention_mask': torch.zeros(n, 1, 8, 8, dtype=torch.bool), "
    more += "'position_ids': torch.zeros(n, 8, dtype=torch.long)"
    data = loaded(LINES, BY_NAME.format(more=more), packing=True, length=32)
    inputs, _ = everything(data.train)
    assert not [note for note in data.notes if "see each other" in note]
    ends = inputs["input_ids"] == 0
    number = ends.cumsum(1) - ends.int()
    allowed = (number[:, :, None] == number[:, None]).tril()
    full = slice(0, len(data.train) - 1)
    assert torch.equal(inputs["attention_mask"][full, 0], allowed[full])
    assert inputs["attention_mask"].any(-1).all()  # padding sees itself: a row of none is no number
    first = inputs["position_ids"][0].tolist()
    assert first[: first.index(0, 1)] == [*range(first.index(0, 1))]
    seen = loaded(LINES, packing=True, length=32)
    assert [note for note in seen.notes if "see each other" in note]


@pytest.mark.parametrize("marks", [False, True])
def test_only_an_assistants_words_count_in_a_conversation(loaded, vocabulary, marks: bool) -> None:
    body = "<|im_start|>{{ m['role'] }}\n{content}\n"
    content = "{{ m['content'] }}<|im_end|>"
    marked = "{% generation %}" + content + "{% endgeneration %}"
    own = (
        "{% for m in messages %}{% if m['role'] == 'assistant' %}"
        + body.replace("{content}", marked)
        + "{% else %}"
        + body.replace("{content}", content)
        + "{% endif %}{% endfor %}"
    )
    lines = [{"messages": CHAT}]
    data = loaded(lines, template=own if marks else TEMPLATE, answers=True, length=64)
    inputs, targets = everything(data.train)
    whole = vocabulary.decode(inputs[0].tolist(), skip_special_tokens=False)
    assert whole.startswith("<|im_start|>user\nwho sat<|im_end|>\n<|im_start|>assistant\nthe cat")
    counted = [t for t in targets[0].tolist() if t != IGNORED]
    told = vocabulary.decode(counted, skip_special_tokens=False)
    assert told == "the cat<|im_end|>on the mat<|im_end|>"


def test_only_the_answer_of_a_pair_counts_and_its_end(loaded, vocabulary) -> None:
    lines = [{"prompt": "the cat sat on", "completion": " the mat"}]
    _, targets = everything(loaded(lines, answers=True, length=32).train)
    counted = [t for t in targets[0].tolist() if t != IGNORED]
    assert vocabulary.decode(counted, skip_special_tokens=False) == " the mat<|endoftext|>"
    _, targets = everything(loaded(lines, length=32).train)
    counted = [t for t in targets[0].tolist() if t != IGNORED]
    whole = vocabulary.encode("the cat sat on the mat<|endoftext|>").ids
    assert counted == whole[1:]


def test_a_decoder_is_given_its_answer_one_token_later(loaded, vocabulary) -> None:
    more = "'decoder_input_ids': torch.zeros(n, 8, dtype=torch.long), "
    more += "'attention_mask': torch.ones(n, 8, dtype=torch.long)"
    lines = [{"source": "the cat", "target": "a bird"}, {"source": "the dog sat", "target": "hand"}]
    part = loaded(lines, BY_NAME.format(more=more), task="seq2seq", length=16).train
    inputs, targets = everything(part)
    for row, line in enumerate(lines):
        source = [*vocabulary.encode(line["source"]).ids, 0]
        answer = [*vocabulary.encode(line["target"]).ids, 0]
        assert inputs["input_ids"][row].tolist() == source + [1] * (16 - len(source))
        assert inputs["attention_mask"][row].sum() == len(source)
        assert targets[row].tolist() == answer + [IGNORED] * (16 - len(answer))
        begun = inputs["decoder_input_ids"][row, : len(answer)].tolist()
        assert begun == [1, *answer[:-1]]


def test_the_log_counts_pairs_that_are_left_out_and_no_others(loaded) -> None:
    more = "'decoder_input_ids': torch.zeros(n, 8, dtype=torch.long)"
    lines = [{"source": "the cat", "target": "a bird"}] * 9
    whole = loaded(lines, BY_NAME.format(more=more), task="seq2seq", length=16)
    assert not any("left out" in note for note in whole.notes)


def test_buckets_fill_up_samples_as_far_as_they_ask(loaded) -> None:
    part = loaded(LINES, buckets=(16, 64)).train
    assert part.lengths.tolist() == [len(row) for row in _tokens(part)]
    numbers = (part.lengths <= 16).nonzero().flatten()
    assert part.inputs(numbers, 16).shape == (len(numbers), 16)


def _tokens(part) -> list[list[int]]:
    inputs = part.inputs(torch.arange(len(part)), 64).tolist()
    return [row[: row.index(0) + 1] for row in inputs]


def test_what_is_held_out_shares_no_text_with_the_rest(loaded) -> None:
    data = loaded([{"text": f"{n} {text}"} for n in range(5) for text in TEXTS], held_out=0.2)
    assert (data.num_train, data.num_held_out) == (24, 6)
    one, other = ({tuple(row) for row in _samples(p)} for p in (data.train, data.held_out))
    assert not one & other


def _samples(part) -> list[list[int]]:
    found = part.stretches
    return [found.tokens[a:b].tolist() for a, b in found.bounds.tolist()]


def test_a_text_files_lines_or_the_whole_of_it(loaded, vocabulary) -> None:
    lines = loaded([*TEXTS], form="text", file="a.txt", length=64)
    assert len(lines.train) == len(TEXTS)
    whole = loaded([*TEXTS], form="text", file="a.txt", length=16, packing=True)
    tokens = whole.train.stretches.tokens.tolist()
    assert vocabulary.decode(tokens) == "\n".join(TEXTS)


REFUSED = [
    ([{"text": "a"}] * 16 + [{"txt": "a"}], {}, r"lines.jsonl, line 17 has no field 'text'.*txt"),
    ([{"text": "a"}, '{"text": '], {}, "line 2 is not JSON"),
    ([{"text": "a"}, "[1]"], {}, "line 2 is a list, not an object"),
    ([{"text": "a"}, {"text": 3}], {}, "line 2: 'text' is a number, not a text"),
    (["", ""], {}, "lines.jsonl has no line with an object"),
    ([{"text": ""}], {}, "no sample has a token that counts in the loss"),
    ([{"a": "x", "b": "y"}], {}, "line 1 has a, b: which is the text"),
    (LINES, {"known": 20}, "tokenizer.json has 300 tokens, and the model knows 20"),
    (LINES, {"words": "none"}, "none does not exist"),
    (LINES, {"words": "lines.jsonl"}, "lines.jsonl is not a file of the tokenizers library"),
    (LINES, {"task": "masked"}, "tokenizer.json has no mask token"),
    (LINES, {"answers": True}, "only answers are to count, and 'text' has none"),
    (LINES, {"task": "seq2seq"}, "which is the text"),
    ([{"messages": CHAT}], {}, "has no chat template"),
    ([{"messages": CHAT}], {"template": "{{ raise_exception('no') }}"}, "chat template fails: no"),
    ([{"messages": CHAT}], {"template": "{% for %}"}, "line 1: the chat template fails"),
    ([{"messages": [3]}], {"template": TEMPLATE}, "line 1: 'messages' holds no messages"),
    (
        [{"messages": CHAT}],
        {"template": "{{ messages | length }}", "answers": True},
        "does not say where message 2 begins",
    ),
]


@pytest.mark.parametrize(("lines", "more", "said"), REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_advice(loaded, lines, more, said) -> None:
    with pytest.raises(DataFailed, match=said) as caught:
        loaded(lines, **more)
    assert caught.value.advice


@pytest.mark.parametrize("task", ["masked", "seq2seq"])
def test_a_causal_model_learns_no_other_task(vocabulary, tmp_path: Path, task: str) -> None:
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 16, "vocab_size": 400}
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes})
    )
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"source": "a b", "target": "b a"}\n' * 16)
    spec = DataSpec("jsonl", path=str(lines), length=8, text=TextSpec("words", task))
    with pytest.raises(DataFailed, match=f"made for the task causal, and the texts for {task}"):
        load(spec, load_definition(config), str(lines), str(tmp_path / "words"))
