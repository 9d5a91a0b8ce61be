"""A figure of hotloop's beside the truth, and whether they part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison.

    Attributes:
        what: is compared.
        ours: hotloop's figure; None: it gave none.
        truth: taken another way.
        within: the largest relative difference that is no failure.
        how: the truth was taken.
        at_least: ours may be larger.
        at_most: ours may be smaller.
    """

    what: str
    ours: float | None
    truth: float
    within: float
    how: str
    at_least: bool = False
    at_most: bool = False

    @property
    def difference(self) -> float:
        """Relative; of a truth of zero: absolute."""
        if self.ours is None:
            return float("nan")
        return (self.ours - self.truth) / abs(self.truth) if self.truth else self.ours

    @property
    def holds(self) -> bool:
        """Whether they do not part."""
        if self.ours is None:
            return False
        too_large = self.difference > self.within and not self.at_least
        too_small = self.difference < -self.within and not self.at_most
        return not (too_large or too_small)


class Skipped(msgspec.Struct, frozen=True):
    """A comparison that this machine does not allow."""

    what: str
    why: str


def table(rows: Sequence[Row | Skipped]) -> list[str]:
    """Return a Markdown table."""
    lines = [
        "| what | hotloop | truth | difference | allowed | truth taken by | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if isinstance(row, Skipped):
            lines.append(f"| {row.what} | | | | | {row.why} | not run |")
            continue
        sign = ">= " if row.at_least else "<= " if row.at_most else ""
        ours = "none" if row.ours is None else f"{row.ours:.4g}"
        verdict = "ok" if row.holds else "**PARTS**"
        lines.append(
            f"| {row.what} | {ours} | {sign}{row.truth:.4g} | {row.difference:+.1%} | {row.within:.1%} "
            f"| {row.how} | {verdict} |"
        )
    return lines
