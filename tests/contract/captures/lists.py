"""Which models the suite carries through, in parts that take equally long."""

from tests.contract.captures.configs import ARCHITECTURES
from tests.contract.captures.rows import FILES
from tests.contract.captures.uncut import UNCUT_ARCHITECTURES

_ELSEWHERE = ("mistral", "qwen2", "gemma", "pegasus", "bert", "rwkv")
"""Architectures that others here stand for; and one that changes its weights while it evaluates."""
FILE_NAMES = tuple(sorted(file.stem for file in FILES.glob("*.py")))
_LEFT_OUT = {*_ELSEWHERE, *UNCUT_ARCHITECTURES}
ARCHITECTURE_NAMES = tuple(sorted(ARCHITECTURES.keys() - _LEFT_OUT))
