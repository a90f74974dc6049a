"""Tables in Markdown, printed row by row as they are measured, and kept in docs/evidence.

Where a benchmark is run with `--write`, what stands in its page between these two lines is
replaced, and the first of them names the command, the day and the load of the machine:

    <!-- table: NAME begin; COMMAND, DAY, load L on N cores -->
    <!-- table: NAME end -->
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "evidence"
WRITE = "--write"
NAMED = re.compile(r"<!-- table: (\S+) begin")


class NoPlaceForTable(LookupError):
    """A page without the two lines of a table, or with several of them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tables of one page; `note` says where they come from."""

    page: Path
    note: str
    write: bool

    def table(self, name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print it, and write it once the last row is there. Raises `NoPlaceForTable` before the
        first row is measured."""
        if self.write:
            replaced(self.page.read_text(), name, "", "")
        lines = []
        for cells in chain([head, ["---"] * len(head)], rows):
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
        if self.write:
            table = "\n".join(lines)
            self.page.write_text(replaced(self.page.read_text(), name, table, self.note))


def evidence(page: str, name: str) -> Evidence:
    """For the page docs/evidence/`page`.md, of the benchmark `name` as this process was started;
    takes `--write` out of the arguments."""
    write = WRITE in sys.argv
    sys.argv[:] = [one for one in sys.argv if one != WRITE]
    command = " ".join([f"python -m tests.benchmarks.{name}", *sys.argv[1:]])
    machine = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    note = f"{command}, {datetime.now(UTC):%Y-%m-%d}, {machine}"
    return Evidence(FOLDER / f"{page}.md", note, write)


def replaced(page: str, name: str, table: str, note: str) -> str:
    """The page with this table between its lines. Raises `NoPlaceForTable`."""
    first, last = f"<!-- table: {name} begin", f"<!-- table: {name} end -->"
    place = re.compile(rf"{re.escape(first)}\b.*?-->\n.*?{re.escape(last)}", re.DOTALL)
    if len(place.findall(page)) != 1 or page.count(first) != 1:
        raise NoPlaceForTable(f"there is not one place for the table {name!r}: {first} -->, {last}")
    return place.sub(lambda _: f"{first}; {note} -->\n{table}\n{last}", page)
