"""The events of one JSON trace as a stream of lists: found, cut at event boundaries, decoded, salvaged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from hotloop.trace.read.event import Event, VerbatimEvent
from hotloop.trace.read.salvage import BOUNDARY, BROKEN, Salvage, salvage
from hotloop.trace.read.source import Blocks

CHUNK = 4 << 20
"""Read at once. 4 MB decode as fast as 16 MB (measured), and the worst text, `{},{},`, stays near 120 MB."""
_MAX_EVENT = 64 << 20
"""An event longer than this is passed over; the longest published one, a concatenated stack, is below 1 MB."""
_MAX_HEADER = 64 << 20
_MAX_NESTED = 16
"""Cuts tried before a piece counts as damaged."""
_MAX_UNDECIDED = 4
"""Chunks read together before a piece that is open at every cut counts as damaged."""
_MAX_BARREN = 256 << 20
"""Text without any event in it, after which the file is not taken for a trace."""

_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


@dataclass
class Loss:
    """What could not be read as it stood."""

    lost_events: int = 0
    lost_bytes: int = 0
    mistyped_events: int = 0
    repairs: dict[str, int] = field(default_factory=dict)
    """Kind of damage to the number of chunks in which it was mended."""
    truncated: bool = False
    unreadable: str | None = None
    """Why nothing could be read; None: something was."""
    metadata_lost: bool = False

    def add(self, other: Salvage) -> None:
        """Take up what one salvaged chunk lost."""
        self.lost_events += other.lost_events
        self.lost_bytes += other.lost_bytes
        self.mistyped_events += other.mistyped_events
        for kind in other.repairs:
            self.repairs[kind] = self.repairs.get(kind, 0) + 1


class EventStream:
    """Iterates over a trace's events, list by list; afterwards `metadata` and `loss` are complete."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._decoder = msgspec.json.Decoder(list[Event])
        self._verbatim = msgspec.json.Decoder(list[VerbatimEvent])
        self._text = b""
        self._in_object = False
        """A list of its own may lack its end, by the format of Chrome."""
        self.metadata: dict[str, msgspec.Raw] = {}
        self.loss = Loss()
        self.num_bytes = 0

    def __iter__(self) -> Iterator[list[Event]]:
        """Lists of events in the order of the file."""
        rest = self._find_start()
        if rest is None:
            return
        barren = 0
        while True:
            data = self._read()
            block = rest + data
            cut = _last_boundary(block, len(block)) if data else None
            if data and cut is None:
                rest, dropped = _without_the_overlong(block)
                self.loss.lost_bytes += dropped
                barren += dropped
                if barren > _MAX_BARREN:
                    self.loss.unreadable = f"no event in {barren >> 20} MiB of text"
                    return
                continue
            decoded = self._decode(block, cut)
            if decoded is None:
                rest = block
                continue
            events, footer, cut = decoded
            yield events
            if footer is not None:
                self._read_footer(footer + block[cut:])
                return
            if not data:
                self.loss.truncated |= self._in_object
                return
            rest = block[cut:].lstrip(b" \t\r\n,")

    def verbatim(self) -> list[VerbatimEvent]:
        """The latest list again, times as text."""
        return self._verbatim.decode(self._text)

    def _read(self) -> bytes:
        data = self._blocks.read(CHUNK)
        self.num_bytes += len(data)
        return data

    def _find_start(self) -> bytes | None:
        head = b""
        while True:
            data = self._read()
            head += data
            if head.lstrip()[:1] == b"[":
                return head.lstrip()[1:]
            found = _START.search(head, max(0, len(head) - len(data) - 64))
            if found:
                self._in_object = True
                self._read_metadata(head[: found.end() - 1].rstrip() + b"0}")
                return head[found.end() :]
            if not data or len(head) > _MAX_HEADER:
                self.loss.unreadable = "there is no traceEvents list in it"
                return None

    def _decode(self, block: bytes, cut: int | None) -> tuple[list[Event], bytes | None, int] | None:
        """The events up to the cut, what follows the list's end if that was before it, and the cut used.

        A cut may have fallen among objects nested inside an event: then an earlier one is tried. None: there
        is no earlier one, and more of the file has to be read to know.
        """
        used = cut
        for _ in range(_MAX_NESTED):
            text = b"[" + (block if used is None else block[:used]) + b"]"
            try:
                return self._keep(text), None, len(block) if used is None else used
            except BROKEN as error:
                found = _TRAILING.search(str(error))
                end = int(found.group(1)) - 1 if found else None  # msgspec counts the offending byte in
                nested = "truncated" in str(error)
            if end is not None and (events := self._up_to(text[:end])) is not None:
                return events, text[end:-1], len(block) if used is None else used
            earlier = _last_boundary(block, used - 1) if used is not None and nested else None
            if earlier is None:
                if nested and used is not None and len(block) < _MAX_UNDECIDED * CHUNK:
                    return None
                break
            used = earlier
        return self._salvage(block, cut)

    def _up_to(self, text: bytes) -> list[Event] | None:
        try:
            return self._keep(text.rstrip())
        except BROKEN:
            return None

    def _salvage(self, block: bytes, cut: int | None) -> tuple[list[Event], bytes | None, int]:
        self._text = b"[]"
        mended = salvage(block[:cut], final=cut is None)
        self.loss.add(mended)
        self.loss.truncated |= cut is None and mended.footer is None
        return mended.events, mended.footer, len(block) if cut is None else cut

    def _keep(self, text: bytes) -> list[Event]:
        events = self._decoder.decode(text)
        self._text = text
        return events

    def _read_footer(self, footer: bytes) -> None:
        while len(footer) <= _MAX_HEADER:
            data = self._read()
            if not data:
                break
            footer += data
        body = footer.strip().removeprefix(b",").strip()
        if body not in (b"", b"}"):
            self._read_metadata(b"{" + body)

    def _read_metadata(self, text: bytes) -> None:
        try:
            self.metadata.update(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
        except BROKEN:
            self.loss.metadata_lost = True


def _last_boundary(block: bytes, before: int) -> int | None:
    """Just behind the last event before a place that is followed by the start of another."""
    at = before
    for _ in range(4096):
        at = block.rfind(b"}", 0, at)
        if at < 0:
            return None
        if BOUNDARY.match(block, at + 1):
            return at + 1
    return None


def _without_the_overlong(block: bytes) -> tuple[bytes, int]:
    return (block, 0) if len(block) <= _MAX_EVENT else (b"", len(block))
