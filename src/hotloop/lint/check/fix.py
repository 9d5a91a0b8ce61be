"""Apply the edits of findings to a source text, so that what comes out is Python and has fewer findings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from hotloop.lint.check.engine import Found, examine, rules_for
from hotloop.lint.rule import Edit, Rule
from hotloop.model.safety import Safety
from hotloop.source.source_file import SourceFile

_PASSES = 10  # edits of one call by several rules need one pass each; three was the most seen


@dataclass(frozen=True)
class Fixed:
    """A text after its fixes."""

    text: str
    num_applied: int


def fix_source(path: str, text: str, rules: Sequence[Rule], allowed: Safety) -> Fixed:
    """Apply every edit that is at least as safe as `allowed`, pass by pass, until none is left.

    A pass whose result does not parse, or does not end a finding, is dropped: the text before it is returned.
    """
    applied = 0
    for _ in range(_PASSES):
        file = SourceFile(path, text)
        active = rules_for(
            text, rules
        )  # an edit brings in words: a batch that is pinned can be copied without waiting
        found = examine(file, active)
        chosen = _disjoint(file, [one for one in found if _may_apply(one, allowed)])
        if not chosen:
            break
        changed = _apply(file.module, [edit for one in chosen for edit in one.edits])
        if changed is None or changed == text or not _ended(path, changed, active, found, chosen):
            break
        text, applied = changed, applied + len(chosen)
    return Fixed(text, applied)


def _may_apply(found: Found, allowed: Safety) -> bool:
    return bool(found.edits) and found.safety is not None and found.safety <= allowed


def _disjoint(file: SourceFile, found: list[Found]) -> list[Found]:
    """The findings whose edits do not touch the nodes of one chosen before."""
    chosen: list[Found] = []
    taken: list[cst.CSTNode] = []
    for one in found:
        olds = [edit.old for edit in one.edits]
        if any(file.inside(old, other) or file.inside(other, old) for old in olds for other in taken):
            continue
        chosen.append(one)
        taken.extend(olds)
    return chosen


class _Replace(cst.CSTTransformer):
    def __init__(self, edits: Sequence[Edit]) -> None:
        super().__init__()
        self._new = {id(edit.old): edit.new for edit in edits}

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel:
        if id(original_node) not in self._new:
            return updated_node
        new = self._new[id(original_node)]
        return cst.RemoveFromParent() if new is None else new


def _apply(module: cst.Module, edits: Sequence[Edit]) -> str | None:
    changed = module.visit(_Replace(edits))
    try:
        cst.parse_module(changed.code)
    except cst.ParserSyntaxError:
        return None
    return changed.code


def _ended(
    path: str, text: str, rules: Sequence[Rule], before: Sequence[Found], chosen: Sequence[Found]
) -> bool:
    """Whether each edit ended its finding; others may begin (a pinned batch is copied and waited for)."""
    left = _counts(examine(SourceFile(path, text), rules))
    expected = _counts(before)
    expected.subtract(_counts(chosen))
    return all(left[code] <= expected[code] for code in _counts(chosen))


def _counts(found: Sequence[Found]) -> Counter[str]:
    return Counter(one.finding.code for one in found)
