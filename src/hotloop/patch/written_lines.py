"""The lines that each step put into the files, followed through what later steps make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from difflib import SequenceMatcher

from hotloop.model.tuning import StepEdit
from hotloop.source.line_digests import line_digests

_Lines = set[tuple[str, str]]
"""Path and digest of each."""


class WrittenLines:
    """Says which lines of the edited files are a step's.

    Args:
        original: path to the bytes of each file before any step.
        known: what earlier patches put there.
    """

    def __init__(self, original: Mapping[str, bytes], known: Mapping[str, StepEdit]) -> None:
        self._original = original
        self._known = frozenset(known)
        self._of: dict[str, _Lines] = {
            name: {(path, line) for path, lines in edit.lines.items() for line in lines}
            for name, edit in known.items()
        }

    def follow(self, name: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
        """Take note of what a step did; a line that it changes stays that of the step which put it there, too."""
        own = self._of.setdefault(name, set())
        for path in (path for path in before if before[path] != after[path]):
            old, new = line_digests(before[path]), line_digests(after[path])
            for tag, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                if tag == "equal":
                    continue
                gone: _Lines = {(path, line) for line in old[first:last]}
                put: _Lines = {(path, line) for line in new[begin:end]}
                for lines in self._of.values():
                    lines.update(put if lines & gone else ())
                own |= put

    def of(self, name: str, after: Mapping[str, bytes]) -> dict[str, dict[str, int]]:
        """Return path to the lines by which a step's edit is known, and how often each stands in the file.

        A line that the file held as often before says nothing, and is left out.
        """
        found: dict[str, dict[str, int]] = {}
        for path in sorted({path for path, _ in self._of.get(name, ())}):
            now, before = Counter(line_digests(after[path])), Counter(line_digests(self._original[path]))
            least = Counter() if name in self._known else before
            lines = sorted(line for at, line in self._of[name] if at == path and now[line] > least[line])
            if lines:
                found[path] = {line: now[line] for line in lines}
        return found
