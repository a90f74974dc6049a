"""The OpenAPI document as a page for people: no script, nothing from another server."""

from pathlib import Path
from typing import Any

from jinja2 import Template

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
PAGE = Path(__file__).with_name("handbook.html")


def handbook(document: dict[str, Any]) -> str:
    """HTML, every word of it escaped."""
    groups: dict[str, list[Any]] = {}
    for path, ways in document["paths"].items():
        for method, operation in ways.items():
            groups.setdefault(operation["tags"][0], []).append((path, method, operation))
    template: Template = Template(PAGE.read_text(), autoescape=True)
    shapes = document["components"]["schemas"]
    return template.render(info=document["info"], groups=groups, shapes=shapes)
