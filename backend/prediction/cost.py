"""What a sample costs: the price of a plan's devices for as long as it takes."""

from backend.cluster.cluster import Cluster
from backend.prediction.prediction import Prediction

HOUR, MILLION = 3600, 1e6


def money(found: Prediction, cluster: Cluster) -> float | None:
    """Of a sample, in the currency of the devices' prices; None where one has none. Devices that
    the plan does not use are free for others, and do not count."""
    used = {number for stage in found.plan.partition.stages for number in stage.devices}
    prices = [cluster.at(number).price for number in used]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices) or not found.samples_per_second:
        return None
    return sum(known) / HOUR / found.samples_per_second
