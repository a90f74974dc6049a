"""What the API answers where it does not do what it was asked, in words for people."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from backend.errors import StageflowError, first_line
from workers.pools.engine import EngineAway, OrderRefused

LONGEST = 500
"""Characters of the API's own message that are shown."""
REFUSED = {
    HTTPStatus.BAD_REQUEST: "Correct the pool's settings; `kubectl explain` says what they may be.",
    HTTPStatus.FORBIDDEN: "Give the pool's account the role that the guide to Kubernetes pools"
    " lists, or ask for more quota where the namespace's is exceeded.",
    HTTPStatus.NOT_FOUND: "Look whether the namespace is there (kubectl get namespaces) and"
    " JobSet installed (kubectl get crd jobsets.jobset.x-k8s.io).",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Correct what it names: the pool's settings, or the number"
    " of nodes and devices that the run asks for.",
}
"""Answers that stay the same until a person changes something, with what to change."""
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What comes of an answer of another shape, as a proxy may give one. No job is gone by that."""
LATER = "Jobs go on without it; it is tried again. `kubectl cluster-info` says whether it answers."
SIGN_IN = "Sign in to the cluster again, or renew the token in the pool's kubeconfig."


@contextmanager
def told(*, ordering: bool = False) -> Iterator[None]:
    """Turns the client's faults into `EngineAway`, and while `ordering` into `OrderRefused` where
    asking again would not help."""
    try:
        yield
    except ApiException as fault:
        raise _meant(fault, ordering) from fault
    except (HTTPError, OSError) as fault:
        raise EngineAway(
            f"Kubernetes does not answer: {_short(first_line(fault))}", LATER
        ) from fault
    except UNREADABLE as fault:
        said = f"{type(fault).__name__}: {_short(first_line(fault))}"
        raise EngineAway(
            f"Kubernetes gives an answer that cannot be read: {said}", LATER
        ) from fault


def _meant(fault: ApiException, ordering: bool) -> StageflowError:
    status, said = fault.status or 0, message(fault)
    if status in REFUSED:
        advice = REFUSED[HTTPStatus(status)]
        if ordering:
            return OrderRefused(f"Kubernetes refuses the job: {said}", advice)
        return EngineAway(f"Kubernetes refuses to answer: {said}", advice)
    if status == HTTPStatus.UNAUTHORIZED:
        return EngineAway("Kubernetes does not know the pool's account", SIGN_IN)
    return EngineAway(f"Kubernetes gives an unexpected answer: {status} {said}".rstrip(), LATER)


def message(fault: ApiException) -> str:
    """The API's own words, where it sent any."""
    try:
        said = json.loads(fault.body or "{}")["message"]
    except (ValueError, KeyError, TypeError):
        said = fault.reason or ""
    return _short(str(said))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
