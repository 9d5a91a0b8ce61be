"""The functions of a running model that write an activation function out, with torch's own in its place."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.optimize.comparison.function_code import place_of
from hotloop.optimize.comparison.rewritten import CALL, Change, RewrittenSwap
from hotloop.patterns.activations.pattern import WrittenOut, written_out


class PointwiseSwap(RewrittenSwap):
    """Exchanges the code of functions that write an activation function out."""

    nothing = "no training forward ran an activation function that is written out"

    def changes(self, source: str) -> Sequence[Change]:
        """Return the functions in which formulas stand."""
        here: dict[str, list[WrittenOut]] = {}
        for each in written_out(source):
            here.setdefault(each.function, []).append(each)
        return [
            Change(
                name,
                formulas[0].line,
                frozenset(each.formula.function.name for each in formulas),
                {place_of(each.expression): _call(each) for each in formulas},
            )
            for name, formulas in here.items()
        ]


def _call(found: WrittenOut) -> str:
    return f"{CALL}{found.formula.function.name}({found.arguments})"
