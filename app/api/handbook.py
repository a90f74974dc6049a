"""The OpenAPI document as a page for people: no script, nothing from another server."""

from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
STYLE = """
:root{color-scheme:light dark;--ink:#1B2430;--soft:#5b6675;--line:#E1E5EB;--back:#fff;
--box:#F5F7FA;--get:#00587f;--post:#00694d;--patch:#8f5c00;--delete:#a8323e}
@media(prefers-color-scheme:dark){:root{--ink:#E3E7ED;--soft:#9aa5b3;--line:#2C343F;--back:#12161C;
--box:#1B2129;--get:#6cc0ef;--post:#3fc79b;--patch:#f0b429;--delete:#ff8f98}}
body{font:15px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0}
main{max-width:960px;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p{margin:.3rem 0}.soft{color:var(--soft)}a{color:var(--get)}
details{border:1px solid var(--line);border-radius:6px;margin:.4rem 0;background:var(--back)}
summary{padding:.55rem .8rem;cursor:pointer;display:flex;gap:.7rem;flex-wrap:wrap}
summary span{color:var(--soft)}
details>div{padding:.2rem .9rem .9rem;border-top:1px solid var(--line)}
code,pre{font:13px/1.5 ui-monospace,monospace}
pre{background:var(--box);border:1px solid var(--line);border-radius:6px}
pre{padding:.7rem;overflow:auto}

b.get{color:var(--get)}b.post{color:var(--post)}b.patch{color:var(--patch)}
b.delete{color:var(--delete)}
b{display:inline-block;min-width:3.4rem;font:700 13px ui-monospace,monospace}
table{border-collapse:collapse;width:100%;margin:.4rem 0}
th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
td{vertical-align:top}
th{color:var(--soft);font-weight:500}
"""
CLIENT = """from app.client import Client

stageflow = Client("http://127.0.0.1:8501", token="")   # STAGEFLOW_API_TOKEN, where it is set
for run in stageflow.runs(states=["running"]).runs:
    print(run.id, run.name, run.progress)
run = stageflow.wait(stageflow.retry(7).id)
print(run.state, run.summary.accuracy)"""


def handbook(document: dict[str, Any]) -> str:
    """HTML, every word of it escaped."""
    groups: dict[str, list[str]] = {}
    for path, ways in document["paths"].items():
        for method, operation in ways.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    listed = "".join(
        f"<h2>{escape(name.capitalize())}</h2>{''.join(entries)}"
        for name, entries in groups.items()
    )
    shapes = "".join(_shape(n, s) for n, s in sorted(document["components"]["schemas"].items()))
    info = document["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Stageflow REST API</title><style>{STYLE}</style></head><body><main>"
        f'<h1>Stageflow REST API <span class="soft">{escape(info["version"])}</span></h1>'
        f'<p class="soft">{escape(info["description"])} '
        '<a href="/api/v1/openapi.json">openapi.json</a> · <a href="/">Dashboard</a></p>'
        f"<h2>From Python</h2><pre>{escape(CLIENT)}</pre>{listed}"
        f"<h2>Shapes</h2>{shapes}</main></body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parts = [_parameters(operation["parameters"])]
    if "requestBody" in operation:
        (body,) = operation["requestBody"]["content"].values()
        parts.append(f"<p>Takes {_kind(body['schema'])}</p>")
    for status, answer in operation["responses"].items():
        if status != "default":
            what = " or ".join(
                _kind(given["schema"]) if "schema" in given else escape(media)
                for media, given in answer["content"].items()
            )
            parts.append(f"<p>Gives {what} <span class='soft'>({status})</span></p>")
    parts.append(f"<pre>{escape(_curl(path, method))}</pre>")
    return (
        f'<details id="{operation["operationId"]}"><summary><b class="{method}">{method.upper()}'
        f"</b><code>{escape(path)}</code><span>{escape(operation['summary'])}</span></summary>"
        f"<div>{''.join(parts)}</div></details>"
    )


def _curl(path: str, method: str) -> str:
    sent = "" if method == "get" else f" -X {method.upper()} -H 'Content-Type: application/json'"
    return f"curl{sent} 'http://127.0.0.1:8501{path.replace('{id}', '1')}'"


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(p['name'])}</code></td><td>{_kind(p['schema'])}</td>"
        f"<td class='soft'>{escape(_default(p))}</td></tr>"
        for p in parameters
    )
    return f"<table><tr><th>parameter</th><th>type</th><th></th></tr>{rows}</table>" if rows else ""


def _default(parameter: dict[str, Any]) -> str:
    if parameter["in"] == "path":
        return "in the path"
    default = parameter["schema"].get("default")
    return "" if default in (None, "", []) else f"default {default}"


def _shape(name: str, schema: dict[str, Any]) -> str:
    if "enum" in schema:
        inside = f"<p>{escape(', '.join(map(str, schema['enum'])))}</p>"
    else:
        needed = schema.get("required", [])
        rows = "".join(
            f"<tr><td><code>{escape(field)}</code></td><td>{_kind(kind)}</td>"
            f"<td class='soft'>{'' if field in needed else 'optional'}</td></tr>"
            for field, kind in schema.get("properties", {}).items()
        )
        inside = f"<table><tr><th>field</th><th>type</th><th></th></tr>{rows}</table>"
    text = f"<p class='soft'>{escape(schema['description'])}</p>" if "description" in schema else ""
    return (
        f'<details id="shape-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<div>{text}{inside}</div></details>"
    )


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words, with links to the shapes."""
    match schema:
        case {"$ref": place}:
            name = escape(place.rpartition("/")[2])
            return f'<a href="#shape-{name}"><code>{name}</code></a>'
        case {"anyOf": ways} | {"oneOf": ways}:
            return " or ".join(_kind(way) for way in ways)
        case {"enum": values}:
            return escape(" | ".join(map(str, values)))
        case {"const": value}:
            return escape(str(value))
        case {"type": "array", "items": dict() as items}:
            return f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": dict() as values}:
            return f"mapping to {_kind(values)}"
        case {"type": kind}:
            return escape(f"{kind}, {schema['format']}" if "format" in schema else str(kind))
        case _:
            return "anything"
