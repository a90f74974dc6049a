"""Sites: pipelines on devices of their own, with slow links between, and what they exchange.

A site has a whole pipeline, whose replicas sum their gradients as ever, and weights of its own.
After an update of a stage the sites exchange what they learned, stage by stage.
"""

from dataclasses import dataclass
from math import isfinite

from backend.errors import InvalidInput
from backend.planning.rule_text import rule_words, with_settings

OTHER_LABELS = "Where each site has samples of other labels, sites may learn much worse."
"""Hsieh et al., ICML 2020, for every rule that exchanges rarely or in part."""
MOST_EVERY = 1_000_000
"""Updates between two exchanges (a bound of ours, so that a wrong number is told)."""


@dataclass(frozen=True, slots=True)
class SiteRule:
    """What is known of a rule by which sites learn from each other.

    settings  of `Sites` that it has
    copies    of the weights that it keeps beside, in their finest precision
    """

    title: str
    source: str
    note: str
    settings: tuple[str, ...]
    copies: int


SITE_RULES = {
    "elastic": SiteRule(
        "Elastic averaging",
        "Zhang, Choromanska, LeCun, NeurIPS 2015; AvgPipe, PPoPP 2023",
        "sites and a reference move towards each other after every update",
        (),
        1,
    ),
    "diloco": SiteRule(
        "DiLoCo",
        "Douillard et al., arXiv 2311.08105, algorithm 1",
        "sites train alone for some updates, then an outer optimizer takes the mean of their ways",
        ("every", "rate", "momentum"),
        2,
    ),
    "gaia": SiteRule(
        "Gaia's significance filter",
        "Hsieh et al., NSDI 2017",
        "of each weight a site sends what it learned once that is significant beside the weight",
        ("threshold", "full"),
        2,
    ),
}
"""Every rule by name. Adding one is a line here and one in `workers.runtime.state.exchanges`."""


@dataclass(frozen=True, slots=True)
class Sites:
    """What the pipelines of a plan exchange after their updates.

    rule      a name of `SITE_RULES`
    every     updates of a stage from one exchange to the next (DiLoCo's H)
    rate      of the outer optimizer, and
    momentum  its Nesterov momentum (DiLoCo: 0.7 and 0.9)
    threshold  of Gaia: the share of a weight from which on what was learned is sent, at the first
              update; it falls as one over the root of the updates
    full      every so many updates all that is held back is sent; 0 = never
    devices   from the first device of a site to that of the next one; 0 = all on the same
    """

    rule: str = "diloco"
    every: int = 20
    rate: float = 0.7
    momentum: float = 0.9
    threshold: float = 0.01
    full: int = 0
    devices: int = 0

    @property
    def kind(self) -> SiteRule:
        """What is known of its rule. Raises `InvalidInput` with the rules that there are."""
        if self.rule not in SITE_RULES:
            known = ", ".join(SITE_RULES)
            raise InvalidInput(f"no rule between sites {self.rule!r}", f"Choose one of: {known}.")
        return SITE_RULES[self.rule]

    @property
    def period(self) -> int:
        """Updates from one exchange to the next: so many a site may be ahead of another at most,
        for at an exchange it waits for all."""
        return self.every if "every" in self.kind.settings else 1

    @property
    def words(self) -> str:
        """As `read_sites` reads it: "diloco:every=20,rate=0.7,momentum=0.9"."""
        return rule_words(self.rule, self, self.kind.settings)

    def check(self) -> None:
        """Raises `InvalidInput` where it is none."""
        settings = self.kind.settings
        if "every" in settings and not 1 <= self.every <= MOST_EVERY:
            raise InvalidInput(
                f"sites that exchange every {self.every} updates", f"Give 1 to {MOST_EVERY}."
            )
        if "rate" in settings and not (isfinite(self.rate) and self.rate > 0):
            raise InvalidInput(f"an outer rate of {self.rate:g} is not above 0", "Try 0.7.")
        if "momentum" in settings and not 0 <= self.momentum < 1:
            raise InvalidInput(f"outer momentum {self.momentum:g} is not in 0 up to 1", "Try 0.9.")
        if "threshold" in settings and not self.threshold >= 0:
            raise InvalidInput(f"a threshold of {self.threshold:g} is below 0", "Try 0.01.")
        if not 0 <= self.full <= MOST_EVERY:
            raise InvalidInput(
                f"sites that send all every {self.full} updates", f"Give 0 (never) to {MOST_EVERY}."
            )
        if self.devices < 0:
            raise InvalidInput(f"a site of {self.devices} devices", "Give 0 or more.")


def read_sites(text: str) -> Sites | None:
    """The sites of a text such as "diloco:every=100,rate=0.7" or "diloco"; None of an empty one.
    Raises `InvalidInput`."""
    rule, _, rest = text.strip().partition(":")
    if not rule:
        return None
    found = Sites(rule)
    found = with_settings(found, rest, found.kind.settings, found.kind.title, found.words)
    found.check()
    return found
