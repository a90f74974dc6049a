"""Which files pages have offered to whom: a file's address is of use to nobody else."""

import re
from collections import OrderedDict

from starlette.types import Message, Send

from app.api.problems import Refused

PLACE = "/media/"
OFFERED = re.compile(rb"/media/([0-9a-f]{16,128})")
ASKED = re.compile(r"/media/([0-9a-f]{16,128})(\.\w*)?")
MOST = 20_000
"""Offers that are remembered; a page that was drawn longer ago has to be drawn again."""


class Offers:
    """Streamlit names files by their content and gives them to whoever asks. What a page shows
    is told to it by a websocket, which knows its person: no other way leads to an address."""

    def __init__(self, most: int = MOST) -> None:
        self._made: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._most = most

    def heard(self, send: Send, person: str) -> Send:
        """`send` of a person's websocket, with the offers in it remembered."""

        async def sending(message: Message) -> None:
            for found in OFFERED.findall(message.get("bytes") or b""):
                self._make(person, found.decode())
            await send(message)

        return sending

    def check(self, person: str, path: str) -> None:
        """Raises `Refused` where the path is a file's that was not offered to the person: the
        same as where there is none."""
        if not path.startswith(PLACE):
            return
        asked = ASKED.fullmatch(path)
        if asked is None or (person, asked[1]) not in self._made:
            raise Refused(404, "there is no such file", "Open the page again, and download there.")

    def _make(self, person: str, file: str) -> None:
        self._made[person, file] = None
        self._made.move_to_end((person, file))
        if len(self._made) > self._most:
            self._made.popitem(last=False)
