"""Values that SQLite and PostgreSQL would refuse or forget."""

import json
from datetime import UTC, datetime, timedelta, timezone
from math import isfinite

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import sqlite

from backend.storage.tables.values import UtcDateTime, clean, to_column

DIALECT = sqlite.dialect()
every_text = st.text(st.characters(exclude_categories=()))
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | every_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(every_text, inner, max_size=4),
    max_leaves=12,
)


@given(every_text)
def test_clean_text_can_be_stored_and_stays_clean(text: str):
    cleaned = clean(text)
    assert "\0" not in cleaned
    assert cleaned.encode().decode() == clean(cleaned)
    assert len(cleaned) == len(text)


def test_ordinary_text_is_left_as_it_is():
    assert clean("Größe ≥ 3 · 模型 🙂\n") == "Größe ≥ 3 · 模型 🙂\n"


@given(documents)
def test_every_document_becomes_json_without_nul(document: object):
    text = to_column(document)
    text.encode()
    json.loads(text)
    assert "\\u0000" not in text


@given(st.floats())
def test_a_number_that_is_not_finite_becomes_null(number: float):
    assert json.loads(to_column([number])) == [number if isfinite(number) else None]


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7, minutes=30))])))
def test_a_moment_stays_the_same_moment(moment: datetime):
    kind = UtcDateTime()
    try:
        stored = kind.process_bind_param(moment, DIALECT)
    except OverflowError:
        return  # the first hours of year 1 and the last of 9999
    assert stored is not None
    forgetful = kind.process_result_value(stored.replace(tzinfo=None), DIALECT)
    assert forgetful == kind.process_result_value(stored, DIALECT) == moment
