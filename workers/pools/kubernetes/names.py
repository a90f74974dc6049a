"""Names that Kubernetes takes, made of any text, and where it keeps the text itself."""

import re
from hashlib import sha256

LONGEST = 43
"""Characters of a JobSet's name: a pod's name, `NAME-agent-0-99999-abcde`, may have 63."""
DIGEST = 16

ORDER = "stageflow-order"
"""The annotation with an order's name as it is."""
POOL, JOB, RUN = "stageflow-pool", "stageflow-job", "stageflow-run"
"""Labels of a JobSet and of its pods: whose it is, its own name, the run's id."""
QUEUE = "kueue.x-k8s.io/queue-name"
"""The label by which Kueue finds its queue."""
AGENT = "agent"
"""The one Job of a JobSet, and the container of its pods."""


def dns_label(text: str) -> str:
    """A name by RFC 1035, at most `LONGEST` characters long, another for every other text: the text
    itself where it is such a name without `--`, otherwise what is left of it, `--` and a digest."""
    if len(text) <= LONGEST and re.fullmatch(r"[a-z](-?[a-z0-9])*", text):
        return text
    left = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    left = left if left[:1].isalpha() else f"job-{left}"
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()[:DIGEST]
    return f"{left[: LONGEST - DIGEST - 2].strip('-')}--{digest}"
