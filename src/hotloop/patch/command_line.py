"""The program's own command line with other values for its options."""

from __future__ import annotations

from collections.abc import Sequence


def with_options(command: Sequence[str], options: Sequence[str], *, only_given: bool) -> tuple[str, ...]:
    """Return a command line with options set to values; those that it does not give are added, unless told not to."""
    words = list(command)
    for option, value in zip(options[::2], options[1::2], strict=True):
        joined = next((at for at, word in enumerate(words) if word.startswith(f"{option}=")), None)
        if joined is not None:
            words[joined] = f"{option}={value}"
        elif option in words[:-1]:
            words[words.index(option) + 1] = value
        elif not only_given:
            words += [option, value]
    return tuple(words)
