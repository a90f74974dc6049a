"""People's places: what may be one, and what Apprise is told of it."""

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from backend.errors import InvalidInput
from backend.notifications.places import apprise_url
from backend.runs.history.notices import NoticePlace, PlaceKind, place_address


def place(kind: PlaceKind, address: str) -> NoticePlace:
    return NoticePlace(1, 1, kind, address, (), "mine", datetime.now(UTC))


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        (PlaceKind.WEBHOOK, "file:///etc/passwd"),
        (PlaceKind.WEBHOOK, "json://10.0.0.1"),
        (PlaceKind.WEBHOOK, "https://"),
        (PlaceKind.WEBHOOK, "https://a b/c"),
        (PlaceKind.WEBHOOK, "https://host:99999/"),
        (PlaceKind.WEBHOOK, "https://me:secret@host/"),
        (PlaceKind.CHAT, "slack://a/b/c"),
        (PlaceKind.CHAT, "https://[::1"),
        (PlaceKind.MAIL, "ada"),
        (PlaceKind.MAIL, "ada@example.org?smtp=localhost"),
        (PlaceKind.MAIL, "ada@example.org\nBcc: eve@example.org"),
        (PlaceKind.MAIL, "a@" + "x" * 500 + ".org"),
    ],
)
def test_what_is_no_place_is_refused_without_saying_it(kind: PlaceKind, address: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        place_address(kind, address)
    assert "secret" not in str(refused.value) + refused.value.advice


def test_a_webhook_gives_its_host_and_path_alone() -> None:
    told = urlsplit(apprise_url(place(PlaceKind.WEBHOOK, "https://h.org:8443/a%20b?k=v&+X=y"), ""))
    assert (told.scheme, told.netloc, told.path) == ("jsons", "h.org:8443", "/a%20b")
    assert set(parse_qs(told.query)) <= {"-k", "- X"}, "no option of Apprise's own"


@pytest.mark.parametrize(
    ("host", "word"), [("hooks.slack.com", "text"), ("discord.com", "content")]
)
def test_a_chat_takes_the_words_alone(host: str, word: str) -> None:
    told = parse_qs(
        urlsplit(apprise_url(place(PlaceKind.CHAT, f"https://{host}/x"), "")).query,
        keep_blank_values=True,
    )
    assert told[":message"] == [word]
    assert [name for name, value in told.items() if value == [""]] == [
        *(":version", ":title", ":attachments", ":type")
    ]


def test_mail_goes_by_the_server_of_the_settings_or_not_at_all() -> None:
    ada = place(PlaceKind.MAIL, "ada+runs@example.org")
    assert apprise_url(ada, "") == ""
    for server in ("mailtos://u:p@host", "mailtos://u:p@host?from=a@b.org"):
        assert parse_qs(urlsplit(apprise_url(ada, server)).query)["to"] == [ada.address]


def test_what_is_shown_of_an_address_is_its_host() -> None:
    assert place(PlaceKind.CHAT, "https://hooks.slack.com/services/T/B/x").hint == (
        "https://hooks.slack.com/…"
    )
