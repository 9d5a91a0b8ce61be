"""The layers of a running model that write a normalization out, with torch's own in its place."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.optimize.catalogue.compute.fused_layers.pattern import written_norms
from hotloop.optimize.comparison.function_code import place_of
from hotloop.optimize.comparison.rewritten import CALL, Change, RewrittenSwap


class NormSwap(RewrittenSwap):
    """Exchanges the code of `forward` methods that write a normalization out."""

    nothing = "no training forward ran a normalization that is written out"

    def changes(self, source: str) -> Sequence[Change]:
        """Return the `forward` of each class that is a normalization."""
        return [
            Change(
                each.function,
                each.line,
                frozenset({each.name}),
                {place_of(each.returned): f"{CALL}{each.name}({each.arguments})"},
                frozenset((statement.lineno, statement.col_offset) for statement in each.gone),
                each.helpers,
            )
            for each in written_norms(source)
        ]
