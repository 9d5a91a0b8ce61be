"""`# hotloop: ignore[code]` at the end of a line."""

import re

_COMMENT = re.compile(r"#\s*hotloop:\s*ignore(?:\[([^\]]*)\])?")


class Suppressions:
    """What the comments of one file switch off, line by line."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, frozenset[str]] = {}
        if "hotloop:" not in text:
            return
        for number, line in enumerate(text.splitlines(), start=1):
            match = _COMMENT.search(line)
            if match is not None:
                codes = frozenset(code.strip() for code in (match.group(1) or "").split(",") if code.strip())
                self._lines[number] = codes

    def covers(self, code: str, *lines: int) -> bool:
        """Whether a comment on one of the lines names the code, or names none and so means all."""
        return any(
            line in self._lines and (not self._lines[line] or code in self._lines[line]) for line in lines
        )
