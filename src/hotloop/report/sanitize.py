"""A document whose every string may be shown: text of others is written out, secrets are gone, nothing is endless."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from hotloop.model.foreign_text import shown
from hotloop.model.secrets import without_secrets
from hotloop.report.document import Code

MAX_TEXT = 2000
"""Characters of one string; a program may print a line of 100 KB."""
MAX_LINES = 400
"""Of a block of code or output."""
_Value = TypeVar("_Value")


def cleaned(value: _Value) -> _Value:
    """Return a document, or a part of one, with clean strings."""
    return _clean(value)  # type: ignore[no-any-return]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Code):
        return msgspec.structs.replace(value, text=_lines(value.text))
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{name: _clean(getattr(value, name)) for name in value.__struct_fields__}
        )
    if isinstance(value, (tuple, list)):
        return type(value)(_clean(one) for one in value)
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return value


def _text(text: str) -> str:
    # Secrets first: an invisible character within one would keep its shape from being seen.
    safe = without_secrets(shown(text[: 2 * MAX_TEXT]))
    return safe if len(safe) <= MAX_TEXT else f"{safe[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} characters more)"


def _lines(text: str) -> str:
    lines = text.split("\n")
    kept = [_text(line) if line else "" for line in lines[:MAX_LINES]]
    more = [f"… ({len(lines) - MAX_LINES:,} lines more)"] if len(lines) > MAX_LINES else []
    return "\n".join([*kept, *more])
