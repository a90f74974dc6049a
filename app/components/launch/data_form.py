"""Ask for the data of a training: the form, and what that form must know."""

import streamlit as st

from app.components.launch.fields import Fields
from app.components.launch.samples_form import pictures_form, text_form
from app.formats import sentence
from app.session.state import Param
from backend.runs.request.data_forms import FORMS
from backend.runs.request.data_text import read_buckets, words
from backend.runs.request.sample_specs import TableSpec
from backend.runs.request.spec import DataSpec

DEFAULT = "the model's default"
NAMES = {"": DEFAULT} | {name: form.title for name, form in FORMS.items()}
LAST = {"drop": "left out, others in every epoch", "keep": "in smaller microbatches"}


def data_form(spec: DataSpec, fields: Fields) -> DataSpec:
    """The data that are chosen."""
    left, right = st.columns(2)
    with left:
        name = fields.choice("Data", NAMES, spec.name, Param.DATA)
    form = FORMS.get(name)
    if name == "synthetic":
        with right:
            return DataSpec(name, fields.whole("Synthetic samples", spec.samples, Param.SAMPLES))
    if form is None or not form.path:
        pictures = pictures_form(spec.pictures, fields, form)
        return DataSpec(name, spec.samples, pictures=pictures)
    with right:
        path = fields.text(
            "Path on the node",
            spec.path,
            Param.PATH,
            f"{sentence(form.path)}, inside a folder that the node's STAGEFLOW_DATA names",
        )
    return _chosen(fields, spec, name, path)


def _chosen(fields: Fields, spec: DataSpec, name: str, path: str) -> DataSpec:
    form = FORMS[name]
    columns, tokens = form.columns, text_form(spec.text, fields, form)
    left, right = st.columns(2)
    inputs, targets, length = spec.inputs, spec.targets, spec.length
    with left:
        if columns:
            usual = "those of the task, such as text" if tokens.tokenizer else "all but the targets"
            usual = f"Names of {columns}, separated by commas; empty = {usual}"
            inputs = words(fields.text("Inputs", ", ".join(inputs), Param.INPUTS, usual))
        if name == "text" or tokens.tokenizer:
            note = "Tokens of a sample. Without a tokenizer bytes; 0 = every line is one"
            length = fields.whole("Length", length, Param.LENGTH, note, least=0)
        held_out = fields.whole(
            "Held out, %",
            round(100 * spec.held_out),
            Param.HELD_OUT,
            "Of the samples, where the data have no part of their own to evaluate on",
            least=0,
        )
        last = fields.choice("Samples left over", LAST, spec.last, Param.LAST)
    with right:
        if columns:
            usual = "those of the task" if tokens.tokenizer else "the last one"
            usual = f"Likewise; empty = {usual}"
            targets = words(fields.text("Targets", ", ".join(targets), Param.TARGETS, usual))
        note = "For samples of different lengths: what they are padded to, such as 16, 32, 64"
        told = ", ".join(map(str, spec.buckets))
        told = fields.text("Buckets", told, Param.BUCKETS, note)
        buckets = fields.read(lambda: read_buckets(told), spec.buckets)
    return DataSpec(
        name,
        path=path.strip(),
        inputs=inputs,
        targets=targets,
        held_out=held_out / 100,
        length=length,
        last="keep" if last == "keep" else "drop",
        buckets=buckets,
        text=tokens,
        pictures=pictures_form(spec.pictures, fields, form),
        table=_table_form(spec.table, fields)
        if form.table and not tokens.tokenizer
        else TableSpec(),
    )


def _table_form(spec: TableSpec, fields: Fields) -> TableSpec:
    left, right = st.columns(2)
    with left:
        note = "With the mean of the column's other cells; without this they are refused"
        fill = fields.switch("Fill empty cells", spec.fill, Param.FILL, note)
    with right:
        note = "Columns of fractions are brought to a mean of 0 and a deviation of 1"
        return TableSpec(fill, fields.switch("Standardise", spec.standard, Param.STANDARDISE, note))
