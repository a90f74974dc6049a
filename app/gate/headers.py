"""What a browser is told beside every answer: what a page may load, and who may frame it."""

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "frame-src 'none'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Scripts: Streamlit's page has one of its own inline, Plotly and Vega compile functions, and
canvas components are loaded as blobs. Nothing comes from another server, nothing goes to one."""
PLAIN = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def guarded(send: Send) -> Send:
    """`send` with the headers added, where an answer does not bring a stricter policy."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in PLAIN.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
