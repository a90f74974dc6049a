"""In which experiment trackers a run is followed."""

from dataclasses import dataclass

from backend.errors import InvalidInput

NONE = "none"
"""The word for no tracker at all."""


def lease_of(tracker: str) -> str:
    """Who holds it sends to the tracker."""
    return f"tracker {tracker}"


def asked(text: str) -> tuple[str, ...] | None:
    """The trackers of "mlflow,wandb"; () of "none"; None of "", which says nothing of them."""
    if text.strip() in ("", NONE):
        return None if not text.strip() else ()
    return tuple(name.strip() for name in text.split(",") if name.strip())


def written(trackers: tuple[str, ...] | None) -> str:
    """The text that `asked` reads."""
    return "" if trackers is None else ",".join(trackers) or NONE


@dataclass(frozen=True, slots=True)
class Tracking:
    """`known` are the trackers that settings name; `everything`: each run is followed in all of
    them unless it says otherwise, else none unless it does."""

    known: tuple[str, ...] = ()
    everything: bool = True

    @property
    def usual(self) -> tuple[str, ...]:
        """Where a run is followed that says nothing of it."""
        return self.known if self.everything else ()

    def chosen(self, asked: tuple[str, ...] | None) -> tuple[str, ...]:
        """Where a run is followed that asks for these (None = says nothing). Raises
        `InvalidInput`."""
        if asked is None:
            return self.usual
        for name in asked:
            self.check(name)
        return tuple(dict.fromkeys(asked))

    def check(self, name: str) -> None:
        """Raises `InvalidInput` where it is none of those that settings name."""
        if name not in self.known:
            there = f"Choose one of: {', '.join(self.known)}." if self.known else "There is none."
            raise InvalidInput(
                f"no tracker {name[:100]!r} is set up", f"{there} STAGEFLOW_TRACKERS names them."
            )
