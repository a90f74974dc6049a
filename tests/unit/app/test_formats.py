"""Units for eyes: three digits, a space that does not break, the unit that fits."""

from datetime import UTC, datetime, timedelta, timezone
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import formats

S = formats.SPACE
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0032, f"3.20{S}ms"),
        (0.0467, f"46.7{S}ms"),
        (0.4312, f"431{S}ms"),
        (1.2349, f"1.23{S}s"),
        (3.4e-6, f"3.40{S}µs"),
        (2e-9, f"2.00{S}ns"),
        (0, f"0{S}s"),
        (-0.191, f"−191{S}ms"),
        (130, f"2{S}min{S}10{S}s"),
        (None, "—"),
        (nan, "—"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert formats.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (42, f"42{S}s"),
        (72, f"1{S}min{S}12{S}s"),
        (7500, f"2{S}h{S}05{S}min"),
        (273_600, f"3{S}d{S}4{S}h"),
        (inf, "—"),
    ],
)
def test_durations(value: float, text: str) -> None:
    assert formats.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, f"512{S}B"),
        (1024, f"1.00{S}KiB"),
        (27_682_406, f"26.4{S}MiB"),
        (1.4 * 2**30, f"1.40{S}GiB"),
        (3 * 2**40, f"3.00{S}TiB"),
        (0, f"0{S}B"),
    ],
)
def test_sizes(value: float, text: str) -> None:
    assert formats.size(value) == text


def test_bandwidths_are_decimal_as_links_are_sold() -> None:
    assert formats.bandwidth(12e9) == f"12.0{S}GB/s"
    assert formats.bandwidth(1.25e9) == f"1.25{S}GB/s"
    assert formats.bandwidth(900) == f"900{S}B/s"


def test_shares_and_changes() -> None:
    assert formats.percent(0.021) == f"2.1{S}%"
    assert formats.percent(0.98, 0) == f"98{S}%"
    assert formats.change(97, 100) == f"−3.0{S}%"
    assert formats.change(54, 100) == f"−46{S}%"
    assert formats.change(1.03, 1) == f"+3.0{S}%"
    assert formats.change(23.77, 1) == "24×"
    assert formats.change(1, 0) == "—"
    assert formats.times(5.08) == "5.1×"
    assert formats.times(1.031) == "1.03×"


def test_rates_and_counts() -> None:
    assert formats.rate(1372.4) == "1,372/s"
    assert formats.rate(17.12) == "17.1/s"
    assert formats.count(1400) == "1,400"
    assert formats.count(1, "replica") == f"1{S}replica"
    assert formats.count(15, "replica") == f"15{S}replicas"
    assert formats.number(0.0844) == "0.0844"


@pytest.mark.parametrize(
    ("passed", "text"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=5), f"5{S}min ago"),
        (timedelta(hours=3), f"3{S}h ago"),
        (timedelta(days=4), f"4{S}d ago"),
        (timedelta(days=40), "2026-10-11"),
    ],
)
def test_time_ago(passed: timedelta, text: str) -> None:
    assert formats.ago(NOW - passed, NOW) == text


def test_a_moment_is_told_in_the_visitors_zone() -> None:
    east = timezone(timedelta(hours=2))
    assert formats.moment(datetime(2020, 1, 2, 23, 30, tzinfo=UTC), east) == "2020-01-03 01:30"
    assert formats.moment(None) == "—"


def test_long_names_lose_their_middle() -> None:
    assert formats.shorten("features.0", 16) == "features.0"
    short = formats.shorten("encoder.layers.11.attention.out_proj", 16)
    assert len(short) == 16
    assert short.endswith("out_proj")


@given(st.floats(min_value=1e-9, max_value=119))
def test_seconds_keep_three_digits(value: float) -> None:
    number, unit = formats.seconds(value).split(S)
    factor = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(value, rel=0.006)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("98 % of compute (662 ms of 673 ms)", f"98{S}% of compute (662{S}ms of 673{S}ms)"),
        ("56.1 MiB at 1.25 GB/s", f"56.1{S}MiB at 1.25{S}GB/s"),
        ("2 h 05 min, 4 bytes", f"2{S}h 05{S}min, 4{S}bytes"),
        ("stage 3 sends 4 messages", "stage 3 sends 4 messages"),
    ],
)
def test_numbers_stay_on_the_line_of_their_unit(said: str, shown: str) -> None:
    assert formats.unbroken(said) == shown


@given(st.text(max_size=40))
def test_plain_text_survives_markdown(text: str) -> None:
    escaped = formats.plain(text)
    back, position = "", 0
    while position < len(escaped):
        position += escaped[position] == "\\"
        back += escaped[position]
        position += 1
    assert back == text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no run 7", "No run 7"),
        ("empty.py is empty", "empty.py is empty"),
        ("my_model has no parameter", "my_model has no parameter"),
        ("vgg@2 are weights", "vgg@2 are weights"),
        ("graph.txt: no layer", "graph.txt: no layer"),
        ("it's over", "It's over"),
        ("'x' is no cut", "'x' is no cut"),
        ("", ""),
    ],
)
def test_a_name_at_the_start_of_a_sentence_keeps_its_case(said: str, shown: str) -> None:
    assert formats.sentence(said) == shown


def test_stages_of_a_device_are_named_together() -> None:
    assert (formats.stages_words((2,)), formats.stages_words((0, 7))) == ("stage 2", "stages 0, 7")
