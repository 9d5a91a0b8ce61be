"""An option of a program's own command line, and the value that it has to have."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class OptionValue(msgspec.Struct, frozen=True):
    """One option with a value."""

    names: tuple[str, ...]
    """All that it may be called, the longest spelling first: `--workers`, `-j`; under Hydra `data.workers`."""
    value: str

    def given(self, words: Sequence[str]) -> str | None:
        """Return the value that a command line gives it; None: it does not name it. The last one counts."""
        found = [words[at][start:] for at, start in self._at(words)]
        return found[-1] if found else None

    def in_command(self, words: Sequence[str], *, only_given: bool) -> tuple[str, ...]:
        """Return a command line in which it has this value.

        Args:
            words: of the command.
            only_given: a command that does not name it stays as it is.
        """
        changed = list(words)
        at = self._at(words)
        for word, start in at:
            changed[word] = changed[word][:start] + self.value
        return (*changed, *(() if at or only_given else (self.names[0], self.value)))

    def _at(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return where its values stand: the word, and the character that they begin with."""
        found: dict[int, int] = {}
        for at, word in enumerate(words):
            if word in self.names and word.startswith("-") and at + 1 < len(words):
                found[at + 1] = 0
            elif any(word.startswith(f"{name}=") for name in self.names):
                found[at] = word.index("=") + 1
            elif word[:2] in self.names and len(word) > 2:  # a short option with its value behind it: -j4
                found[at] = 2
        return list(found.items())
