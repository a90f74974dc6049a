"""A person's place as Apprise can be told of it: nothing in it but what is written here.

Apprise's own addresses can name files to read and programs to start; people give a mail address,
or an http(s) one, of which host and path alone are taken over, and the query as parameters.
"""

from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from backend.runs.history.notices import NoticePlace, PlaceKind

DISCORD = ("discord.com", "discordapp.com")


def apprise_url(place: NoticePlace, mail: str) -> str:
    """`mail` is the address of the mail server (`Settings.notify_mail`); "" without one, and then
    for mail too."""
    if place.kind is PlaceKind.MAIL:
        return f"{mail}{'&' if '?' in mail else '?'}{urlencode({'to': place.address})}" * bool(mail)
    url = urlsplit(place.address)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    port = f":{url.port}" if url.port else ""
    scheme = "jsons" if url.scheme == "https" else "json"
    query = [(f"-{name}", value) for name, value in parse_qsl(url.query)]
    if place.kind is PlaceKind.CHAT:
        word = "content" if url.hostname in DISCORD else "text"
        query += [(":message", word), *((f":{gone}", "") for gone in UNSAID)]
    options = f"?{urlencode(query)}" if query else ""
    return f"{scheme}://{host}{port}{quote(url.path, safe='/%')}{options}"


UNSAID = ("version", "title", "attachments", "type")
"""What a chat does not take."""
