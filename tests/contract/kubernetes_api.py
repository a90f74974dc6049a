"""A small API server for tests: keeps objects in memory, and answers as Kubernetes does.

It has no controllers: a test puts pods, workloads, nodes and conditions there itself, or lets
`tests.contract.kubelet` run what JobSets ask for.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from kubernetes.client import ApiClient, Configuration
from urllib3.util.retry import Retry

PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/(?P<version>[^/]+))(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?(?P<log>/log)?"
)
GROUPS = {"jobset.x-k8s.io": {"v1alpha2"}, "kueue.x-k8s.io": {"v1beta2"}}
"""What is installed beside the core."""


def stamp(seconds: float = 0.0) -> str:
    """So many seconds from now, as the API writes times."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Refusal(Exception):
    """An answer that is none of 2xx."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class KubernetesApi:
    """The objects by kind, in the order in which they came, and what the server refuses.

    refuses   status and message by (verb, kind), until it is taken away again
    silent    answers come after this many seconds
    asked     verb, group and kind of every request
    on_create, on_delete   what controllers would do; `on_delete` says whether the object is gone
    """

    def __init__(self) -> None:
        self.namespaces = {"team"}
        self.groups = {group: set(versions) for group, versions in GROUPS.items()}
        self.kept: dict[str, list[dict[str, Any]]] = {}
        self.logs: dict[str, str] = {}
        self.refuses: dict[tuple[str, str], tuple[int, str]] = {}
        self.silent = 0.0
        self.asked: set[tuple[str, str, str]] = set()
        self.on_create: Callable[[dict[str, Any]], None] = lambda _: None
        self.on_delete: Callable[[dict[str, Any]], bool] = lambda _: True
        self.lock = threading.RLock()

    def add(self, kind: str, name: str, /, **parts: Any) -> dict[str, Any]:
        """An object of a test's own."""
        meta = {"name": name, "uid": str(uuid4()), "namespace": "team", "labels": {}}
        made = {"metadata": meta | parts.pop("metadata", {}), "spec": {}, "status": {}} | parts
        with self.lock:
            self.kept.setdefault(kind, []).append(made)
        return made

    def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any]:
        for each in self.kept.get(kind, []):
            if each["metadata"]["name"] == name and each["metadata"]["namespace"] == namespace:
                return each
        raise Refusal(404, f'{kind} "{name}" not found')

    def remove(self, kind: str, gone: dict[str, Any]) -> None:
        with self.lock:
            self.kept[kind] = [each for each in self.kept.get(kind, []) if each is not gone]

    def answer(self, method: str, url: str, body: dict[str, Any]) -> dict[str, Any] | str:
        address = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        found = PATH.fullmatch(address.path)
        if found is None:
            raise Refusal(404, "the server could not find the requested resource")
        group, version, namespace, kind, name, log = found.groups()
        listing = method == "GET" and name is None
        verb = "list" if listing else {"GET": "get", "POST": "create", "DELETE": "delete"}[method]
        with self.lock:
            self.asked.add((verb, group or "", kind + (log or "")))
            if refusal := self.refuses.get((verb, kind)):
                raise Refusal(*refusal)
            if group and version not in self.groups.get(group, ()):
                raise Refusal(404, "the server could not find the requested resource")
            if listing:
                return self._page(kind, namespace, query)
            if verb == "create":
                return self._create(kind, namespace, body, query)
            one = self.find(kind, namespace, name)
            if log:
                if one["status"]["phase"] == "Pending":
                    raise Refusal(400, f'container "agent" in pod "{name}" is waiting to start')
                return self.logs.get(name, "")
            return self._delete(kind, one, body) if verb == "delete" else one

    def _page(self, kind: str, namespace: str | None, query: dict[str, str]) -> dict[str, Any]:
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        found = [
            each
            for each in self.kept.get(kind, [])
            if (namespace is None or each["metadata"]["namespace"] == namespace)
            and wanted.items() <= each["metadata"]["labels"].items()
            and _matches(each, query.get("fieldSelector", ""))
        ]
        first, limit = int(query.get("continue", 0)), int(query.get("limit", 500))
        left = str(first + limit) if first + limit < len(found) else ""
        return {"items": found[first : first + limit], "metadata": {"continue": left}}

    def _create(
        self, kind: str, namespace: str | None, body: dict[str, Any], query: dict[str, str]
    ) -> dict[str, Any]:
        if namespace not in self.namespaces:
            raise Refusal(404, f'namespaces "{namespace}" not found')
        meta = body["metadata"]
        if any(each["metadata"]["name"] == meta["name"] for each in self.kept.get(kind, [])):
            raise Refusal(409, f'{kind} "{meta["name"]}" already exists')
        if "kueue.x-k8s.io/queue-name" in meta.get("labels", {}):
            body["spec"]["suspend"] = True
        if "dryRun" in query:
            return body
        made = self.add(kind, meta["name"], **body)
        made["metadata"]["creationTimestamp"] = stamp()
        self.on_create(made)
        return made

    def _delete(self, kind: str, one: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        uid = options.get("preconditions", {}).get("uid", one["metadata"]["uid"])
        if uid != one["metadata"]["uid"]:
            raise Refusal(409, "the UID in the precondition does not match")
        one["metadata"].setdefault("deletionTimestamp", stamp())
        if self.on_delete(one):
            self.remove(kind, one)
        return one


def _matches(each: dict[str, Any], selector: str) -> bool:
    """As `status.phase!=Failed,spec.nodeName!=`."""
    for path, no, value in re.findall(r"([\w.]+)(!?)=([^,]*)", selector):
        found: Any = each
        for step in path.split("."):
            found = found.get(step, "")
        if (found == value) == bool(no):
            return False
    return True


@contextmanager
def served(api: KubernetesApi) -> Iterator[ApiClient]:
    """A client of the server, which listens for as long."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            time.sleep(api.silent)
            try:
                said = api.answer(self.command, self.path, json.loads(body or b"{}"))
                status = 201 if self.command == "POST" else 200
            except Refusal as no:
                said = {"kind": "Status", "status": "Failure", "message": str(no)}
                status = no.status
            sent = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
            kind = "text/plain" if isinstance(said, str) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(sent)))
            with suppress(BrokenPipeError):  # a client without patience
                self.end_headers()
                self.wfile.write(sent)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield client_of(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def client_of(host: str) -> ApiClient:
    access = Configuration(host=host)
    access.retries = Retry(0)
    access.proxy = None
    return ApiClient(access)
