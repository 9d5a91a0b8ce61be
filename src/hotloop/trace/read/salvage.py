"""Broken JSON, mended where that is safe and otherwise read event by event."""

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from hotloop.trace.read.event import Event, EventArgs

BOUNDARY = re.compile(rb"\s*,\s*(?=\{)")
"""What stands between the closing brace of one event and the opening brace of the next."""

_SEAM = re.compile(rb"(?<=\})\s*,\s*(?=\{)")
_LIST_END = re.compile(rb"\}\s*(?:,\s*)?\]\s*(?=[,}]|\Z)")
_NOT_NUMBERS = re.compile(rb"([:\[,]\s*)-?(?:NaN|nan|Infinity|inf)(?=\s*[,}\]])")
_BAD_ESCAPE = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_CONTROL = bytes(range(0x20))
_TO_SPACE = bytes.maketrans(_CONTROL, b" " * len(_CONTROL))
_LAYOUT_TO_SPACE = bytes.maketrans(b"\r\n\t", b"   ")
_GROUP = 256

BROKEN = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What decoding raises on text that is not JSON, nests too deeply, or is not UTF-8."""


@dataclass
class Salvage:
    """What came out of a broken piece of a trace."""

    events: list[Event] = field(default_factory=list)
    footer: bytes | None = None
    """What follows the end of the event list; None: the end is not in this piece."""
    repairs: list[str] = field(default_factory=list)
    lost_events: int = 0
    lost_bytes: int = 0
    mistyped_events: int = 0


def salvage(text: bytes, final: bool) -> Salvage:
    """Every event that can be read out of `text`, a list's inside.

    Args:
        text: events with commas between them.
        final: nothing follows; an event cut off at the end is lost.
    """
    result = Salvage()
    mended = _mend(text, result)
    bounds = [0, *(seam.end() for seam in _SEAM.finditer(mended)), len(mended)]
    decoder = msgspec.json.Decoder(list[Event])
    for first in range(0, len(bounds) - 1, _GROUP):
        inside = bounds[first : first + _GROUP + 1]
        piece = mended[inside[0] : inside[-1]].rstrip().removesuffix(b",")
        try:
            result.events.extend(decoder.decode(b"[" + piece + b"]"))
        except BROKEN:
            _one_by_one(mended, inside, result)
        if result.footer is not None:
            break
    if not result.repairs and not result.lost_events and not result.mistyped_events:
        result.repairs.append(
            "control characters"
        )  # only line breaks inside strings are mended without a word
    if result.footer is None and final:
        result.footer = _end_in(mended)
    return result


def _end_in(text: bytes) -> bytes | None:
    return b"" if text.strip() == b"]" else None


def _mend(text: bytes, result: Salvage) -> bytes:
    # Between tokens a line break is only white space, so that inside and outside of strings all become blanks.
    text = text.translate(_LAYOUT_TO_SPACE)
    for kind, mend in _MENDERS:
        mended = mend(text)
        if mended != text:
            result.repairs.append(kind)
        text = mended
    return text


def _valid_utf8(text: bytes) -> bytes:
    return text.decode("utf-8", errors="replace").encode()


def _no_control_characters(text: bytes) -> bytes:
    return text.translate(_TO_SPACE)


_MENDERS = (
    ("control characters", _no_control_characters),
    ("invalid UTF-8", _valid_utf8),
    ("NaN or infinity", lambda text: _NOT_NUMBERS.sub(rb"\1null", text)),
    ("invalid escapes", lambda text: _BAD_ESCAPE.sub(lambda bad: b"\\" + bad.group(), text)),
)


def _one_by_one(text: bytes, bounds: list[int], result: Salvage) -> None:
    decoder = msgspec.json.Decoder(Event)
    for start, stop in pairwise(bounds):
        piece = text[start:stop].rstrip().removesuffix(b",")
        end = _LIST_END.search(piece)
        try:
            result.events.append(decoder.decode(piece))
        except msgspec.ValidationError:
            _loosely(piece, result)
        except BROKEN:
            if end and _ends_the_list(piece, end, decoder, result):
                result.footer = text[start + end.end() :]
                return
            if piece.strip() == b"]" or piece.lstrip()[:1] == b"]":
                result.footer = text[start:].lstrip()[1:]
                return
            result.lost_events += 1
            result.lost_bytes += len(piece)


def _ends_the_list(
    piece: bytes, end: "re.Match[bytes]", decoder: "msgspec.json.Decoder[Event]", result: Salvage
) -> bool:
    try:
        result.events.append(decoder.decode(piece[: end.start() + 1]))
    except msgspec.ValidationError:
        _loosely(piece[: end.start() + 1], result)
    except BROKEN:
        return False
    return True


def _loosely(piece: bytes, result: Salvage) -> None:
    """An event of valid JSON with wrong types: what can be understood of it."""
    try:
        loose = msgspec.json.decode(piece)
    except BROKEN:
        loose = None
    if not isinstance(loose, dict):
        result.lost_events += 1
        result.lost_bytes += len(piece)
        return
    result.mistyped_events += 1
    result.events.append(
        Event(
            ph=_text(loose.get("ph")),
            cat=_text(loose.get("cat")),
            name=_text(loose.get("name")),
            pid=_label(loose.get("pid")),
            tid=_label(loose.get("tid")),
            ts=_number(loose.get("ts")),
            dur=_number(loose.get("dur")),
            args=_args(loose.get("args")),
        )
    )


def _args(value: Any) -> EventArgs | None:
    if not isinstance(value, dict):
        return None
    plain = {key: inside for key, inside in value.items() if _label(inside) is not None}
    try:
        return msgspec.convert(plain, EventArgs, strict=True)
    except msgspec.ValidationError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:256]


def _label(value: Any) -> int | float | str | bool | None:
    return value if isinstance(value, int | float | str | bool) else None


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else None
