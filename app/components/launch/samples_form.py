"""Ask for what becomes of texts and pictures before a model is given them."""

from typing import get_args

import streamlit as st

from app.components.launch.fields import Fields
from app.session.state import Param
from backend.runs.request.chat_template import check_template
from backend.runs.request.data_forms import DataForm
from backend.runs.request.sample_specs import PictureSpec, pictures_as_told, told
from backend.runs.request.text_spec import TextSpec, TextTask

TASKS = {
    "causal": "next token",
    "masked": "masked tokens",
    "seq2seq": "text to text",
}


def text_form(spec: TextSpec, fields: Fields, form: DataForm) -> TextSpec:
    """How texts become tokens; the rest is asked for once there is a tokenizer."""
    if not form.texts:
        return TextSpec()
    left, right = st.columns(2)
    with left:
        note = "A tokenizer.json on the node, or its folder; empty = as is usual for the data"
        tokenizer = fields.text("Tokenizer", spec.tokenizer, Param.TOKENIZER, note).strip()
    if not tokenizer:
        return TextSpec()
    with right:
        chosen = fields.choice("Task", TASKS, spec.task, Param.TASK)
        task = next((each for each in get_args(TextTask) if each == chosen), spec.task)
    packing, answers, template, masked = False, False, "", spec.masked
    left, right = st.columns(2)
    if task != "seq2seq":
        with left:
            note = "Texts follow each other in full samples; else each is a sample"
            packing = fields.switch("Packing", spec.packing, Param.PACKING, note)
    if task == "causal":
        with right:
            note = "Counted are only the second text of pairs and what the assistant says in chats"
            answers = fields.switch("Loss on answers only", spec.answers, Param.ANSWERS, note)
        note = "Jinja; empty = the tokenizer's own"
        template = fields.text("Chat template", spec.template, Param.TEMPLATE, note)
        fields.read(lambda: check_template(template), None)
    if task == "masked":
        with right:
            masked = fields.real(
                "Share of masked tokens", spec.masked, Param.MASKED, most=1.0, step=0.05
            )
    return TextSpec(tokenizer, task, packing, answers, template, masked)


def pictures_form(spec: PictureSpec, fields: Fields, form: DataForm | None) -> PictureSpec:
    """What is drawn anew for pictures in each epoch, and how they are normalised."""
    if form is None or not form.pictures:
        return PictureSpec()
    augment, normalise = told(spec)
    left, right = st.columns(2)
    with left:
        note = "In training only: crop=4, flip, jitter=0.2, erase=0.25; empty = none"
        augment = fields.text("Augmentation of pictures", augment, Param.AUGMENT, note)
    with right:
        note = "Means and deviations of the channels: 0.5 0.4 0.4 / 0.2 0.2 0.2"
        normalise = fields.text("Normalisation", normalise, Param.NORMALISE, note)
    return fields.read(lambda: pictures_as_told(augment, normalise), spec)
