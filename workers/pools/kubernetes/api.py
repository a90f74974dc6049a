"""The official client, as far as a pool asks it: plain JSON, in pages, with little patience."""

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

from kubernetes import config
from kubernetes.client import ApiClient, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.util.retry import Retry
from yaml import YAMLError

from backend.errors import InvalidInput, first_line
from workers.pools.kubernetes.faults import told
from workers.pools.kubernetes.manifest import GROUP, PLURAL, VERSION

PATIENCE = (3.0, 15.0)
"""Seconds for a connection, and for each answer."""
PAGE = 500
"""Objects of one answer; a large cluster has a hundred thousand pods."""
LINES = 200
"""The last ones of a pod's log that are read."""
KUEUE, WORKLOADS = "kueue.x-k8s.io", "workloads"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")
"""Newest first. What is read of a workload is the same in both."""
UNREADABLE = (ConfigException, YAMLError, OSError, LookupError, TypeError, ValueError)
"""What the client raises about a kubeconfig that is none."""
CLOSED = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)

Object = Mapping[str, Any]
Objects = tuple[Object, ...]


def connected(context: str = "") -> ApiClient:
    """By the kubeconfig, or as a pod of the cluster. Raises `InvalidInput` where there is
    neither."""
    access = Configuration()
    access.retries = Retry(0)  # the pool asks again by itself
    try:
        config.load_kube_config(
            os.environ.get("KUBECONFIG"), context or None, client_configuration=access
        )
    except UNREADABLE as fault:
        try:
            config.load_incluster_config(client_configuration=access)
        except ConfigException:
            raise InvalidInput(
                f"no access to a Kubernetes cluster: {first_line(fault)}",
                "Set KUBECONFIG to a file with which kubectl works, or start the pool in a pod.",
            ) from fault
    return ApiClient(access)


class ClusterApi:
    """What a pool reads and writes in one namespace. Every call raises `EngineAway`."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        core, custom = CoreV1Api(client), CustomObjectsApi(client)
        jobsets: dict[str, Any] = {
            "group": GROUP,
            "version": VERSION,
            "namespace": namespace,
            "plural": PLURAL,
        }
        self._core, self._namespace = core, namespace
        self._create = partial(custom.create_namespaced_custom_object, **jobsets)
        self._get = partial(custom.get_namespaced_custom_object, **jobsets)
        self._delete = partial(custom.delete_namespaced_custom_object, **jobsets)
        self._list = partial(custom.list_namespaced_custom_object, **jobsets)

    def create(self, jobset: Object, *, dry: bool = False) -> bool:
        """False where there is one of that name. Raises `OrderRefused`."""
        send = partial(self._create, body=jobset, dry_run="All" if dry else None)
        return _asked(send, HTTPStatus.CONFLICT, ordering=True) is not None

    def jobset(self, name: str) -> Object | None:
        answer = _asked(partial(self._get, name=name), HTTPStatus.NOT_FOUND)
        return _read(answer, "metadata") if answer is not None else None

    def delete(self, jobset: Object) -> None:
        """That very one, not another that has come to its name. It stays to be seen until its pods
        have ended."""
        name, uid = jobset["metadata"]["name"], jobset["metadata"]["uid"]
        body = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        gone = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
        _asked(partial(self._delete, name=name, body=body), *gone)

    def jobsets(self, labels: str) -> Objects:
        return _listed(partial(self._list, label_selector=labels)) or ()

    def pods(self, labels: str) -> Objects:
        """Of the namespace."""
        ask = self._core.list_namespaced_pod
        return _listed(partial(ask, self._namespace, label_selector=labels)) or ()

    def workloads(self) -> Objects:
        """Those of Kueue; none where it is not installed, or may not be read."""
        for version in KUEUE_VERSIONS:
            kueue: dict[str, Any] = {"group": KUEUE, "version": version, "plural": WORKLOADS}
            found = _listed(partial(self._list, **kueue), *CLOSED)
            if found is not None:
                return found
        return ()

    def warnings(self) -> Objects:
        """Events of the last hour, as long as the cluster keeps them; none where they may not be
        read."""
        ask = partial(self._core.list_namespaced_event, self._namespace)
        return _listed(partial(ask, field_selector="type=Warning"), *CLOSED) or ()

    def nodes(self) -> Objects | None:
        """None where they may not be listed."""
        return _listed(self._core.list_node, *CLOSED)

    def all_pods(self) -> Objects | None:
        """Of every namespace, those that hold something of a node; None where they may not be
        listed."""
        ask = self._core.list_pod_for_all_namespaces
        alive = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
        return _listed(partial(ask, field_selector=alive), *CLOSED)

    def quotas(self) -> Objects:
        return _listed(partial(self._core.list_namespaced_resource_quota, self._namespace)) or ()

    def log(self, pod: str) -> str:
        """The last lines of what it printed; "" where it has not begun to."""
        ask = partial(self._core.read_namespaced_pod_log, pod, self._namespace, tail_lines=LINES)
        answer = _asked(ask, HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST)
        return str(answer.data, errors="replace") if answer is not None else ""


def _asked(call: Callable[..., Any], *without: HTTPStatus, ordering: bool = False) -> Any:
    """The answer, not yet read; None where it is one of `without`."""
    with told(ordering=ordering):
        try:
            return call(_preload_content=False, _request_timeout=PATIENCE)
        except ApiException as fault:
            if fault.status in without:
                return None
            raise


def _read(answer: Any, needs: str) -> Object:
    """As JSON: the client's classes take over twenty times as long. What has no such key is no
    answer: an empty object must not pass for a cluster without jobs."""
    with told():
        found = json.loads(answer.data)
        if not isinstance(found, dict) or needs not in found:
            raise ValueError(f"no {needs}")
        return found


def _listed(call: Callable[..., Any], *without: HTTPStatus) -> Objects | None:
    """All pages; None where the answer is one of `without`."""
    found: list[Object] = []
    token: str | None = None
    while token != "":
        answer = _asked(partial(call, limit=PAGE, _continue=token), *without)
        if answer is None:
            return None
        page = _read(answer, "items")
        found += page["items"] or ()
        token = page.get("metadata", {}).get("continue") or ""
    return tuple(found)
