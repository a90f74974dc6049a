"""What must hold of the data that a run asks for, as far as it is known without them."""

from backend.errors import InvalidInput
from backend.runs.request.chat_template import check_template
from backend.runs.request.data_forms import FORMS
from backend.runs.request.data_text import check_lengths
from backend.runs.request.sample_specs import TableSpec, check_pictures
from backend.runs.request.spec import DataSpec
from backend.runs.request.text_spec import TextSpec


def validate_data(data: DataSpec) -> None:
    """Raise `InvalidInput` on a value out of range."""
    form = FORMS.get(data.name)
    if data.name and form is None:
        raise InvalidInput(f"no data set {data.name!r}", f"Choose one of: {', '.join(FORMS)}.")
    needs = form.path if form else ""
    if needs and not data.path:
        raise InvalidInput(f"data of the form {data.name!r} need a path", f"Give {needs}.")
    if data.path and not needs:
        raise InvalidInput(
            f"data of the form {data.name or 'default'!r} take no path, but {data.path} is given",
            f"Choose one of {', '.join(name for name, each in FORMS.items() if each.path)}.",
        )
    if not 0 <= data.held_out < 1:
        raise InvalidInput(
            f"{data.held_out:g} of the samples cannot be held out", "Use a share from 0 to 0.99."
        )
    check_lengths(data.length, data.buckets)
    check_pictures(data.pictures)
    _validate_table(data)
    if data.text.tokenizer:
        _validate_text(data)
    elif (data.text.packing, data.text.answers, data.text.template, data.text.task) != (
        *(False, False, ""),
        TextSpec().task,
    ):
        raise InvalidInput(
            "a task, packing, answers or a template are of texts, and no tokenizer is given",
            "Give a tokenizer.json on the node, or leave these out.",
        )


def _validate_table(data: DataSpec) -> None:
    form = FORMS.get(data.name)
    if data.table != TableSpec() and (data.text.tokenizer or form is None or not form.table):
        held = "texts" if data.text.tokenizer else f"the form {data.name or 'default'!r}"
        known = ", ".join(name for name, each in FORMS.items() if each.table)
        raise InvalidInput(
            f"data of {held} have no columns to fill or standardise",
            f"Leave that out, or give a table without a tokenizer: {known}.",
        )


def _validate_text(data: DataSpec) -> None:
    form, text = FORMS.get(data.name), data.text
    if form is None or not form.texts:
        known = ", ".join(name for name, each in FORMS.items() if each.texts)
        raise InvalidInput(
            f"data of the form {data.name or 'default'!r} have no texts for a tokenizer",
            f"Choose one of {known}, or leave the tokenizer out.",
        )
    if data.length < 1:
        raise InvalidInput(
            "samples of 0 tokens", "Give the length of a sample, or buckets and the longest."
        )
    if not 0 < text.masked < 1:
        raise InvalidInput(
            f"{text.masked:g} of the tokens cannot be hidden", "Use a share such as 0.15."
        )
    check_template(text.template)
    if text.packing and (text.task == "seq2seq" or data.buckets):
        raise InvalidInput(
            "packed samples are all of one length, and each holds one stream of texts",
            "Leave out packing, or the buckets and the second text.",
        )
    if text.answers and text.task != "causal":
        raise InvalidInput(
            f"only answers are to count, and the task is {text.task}",
            "Leave that out: it is for the next token.",
        )
