"""Every rule between pipelines by name: the halves of `backend.planning.sites` that compute."""

from collections.abc import Callable

from backend.planning.sites import Sites
from workers.runtime.state.exchanges.diloco import DiLoCo
from workers.runtime.state.exchanges.elastic import Elastic
from workers.runtime.state.exchanges.exchange import Exchange
from workers.runtime.state.exchanges.gaia import Gaia

EXCHANGES: dict[str, Callable[[Sites, float], Exchange]] = {
    "elastic": lambda sites, alpha: Elastic(alpha),
    "diloco": lambda sites, alpha: DiLoCo(sites),
    "gaia": lambda sites, alpha: Gaia(sites),
}
"""Each made of the plan's sites and of alpha of elastic averaging."""


def exchange_of(sites: Sites | None, alpha: float) -> Exchange:
    """That of a stage; without sites pipelines average elastically (AvgPipe)."""
    found = sites or Sites("elastic")
    return EXCHANGES[found.rule](found, alpha)
