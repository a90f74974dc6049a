"""Templates of chats, as far as they can be read without a tokenizer."""

from jinja2 import Environment, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser

from backend.errors import InvalidInput

MAX_TEMPLATE = 65536
"""Characters of a chat template, which is kept with the run."""


class _Answers(Extension):
    """`{% generation %}`, by which transformers marks what an assistant says."""

    tags = {"generation"}  # noqa: RUF012 (jinja2 declares a set)

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def check_template(text: str) -> None:
    """Raises `InvalidInput` on what transformers' Jinja cannot read."""
    if len(text) > MAX_TEMPLATE:
        raise InvalidInput(
            f"a chat template of {len(text)} characters",
            f"Put it beside the tokenizer (chat_template.jinja), or keep it below {MAX_TEMPLATE}.",
        )
    try:
        known: tuple[str | type[Extension], ...] = (_Answers, "jinja2.ext.loopcontrols")
        Environment(autoescape=True, extensions=known).parse(text)
    except TemplateSyntaxError as fault:
        raise InvalidInput(
            f"the chat template cannot be read: {fault.message}, in its line {fault.lineno}",
            "It is Jinja, such as {% for message in messages %}{{ message.content }}{% endfor %}.",
        ) from None
