"""Branches that most steps do not enter: every hundredth step, the first one, the last one, on request."""

import re

import libcst as cst

from hotloop.lint.infer.names import dotted
from hotloop.source.source_file import SourceFile

# Switches that are off in a run whose speed matters; seen in the published scripts the rules were tried on.
_SWITCH = re.compile(
    r"log|print|verbose|debug|save|checkpoint|eval|valid|vis|plot|dry|profil|report|display|dump|test|empty|unused"
)
_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_RANK = re.compile(r"rank|process|master|main|chief")


def is_rare_branch(above: cst.CSTNode, below: cst.CSTNode) -> bool:
    """Whether `below`, a part of `above`, is a branch that few steps enter."""
    if not isinstance(above, cst.If) or below is above.test:
        return False
    if _asks_for_training(above.test):
        return (below is above.orelse) != isinstance(above.test, cst.UnaryOperation)
    if below is above.orelse:
        return False
    return is_rarely_true(above.test) or _ends_the_loop(above.body) or _starts_over(above)


def is_rarely_true(test: cst.BaseExpression) -> bool:
    """Whether a test holds in few steps of a run whose speed matters."""
    return is_periodic(test) or _is_switch(test)


def is_periodic(test: cst.BaseExpression) -> bool:
    """`step % 100 == 0`, `step == 0`, `step in milestones`, `time.time() - last > 10`."""
    for part in _parts(test):
        if isinstance(part, cst.Modulo):
            return True
        if isinstance(part, cst.Comparison) and _picks_few(part) and not _is_about_rank(part):
            return True
        if isinstance(part, cst.Call) and re.search(r"time|should|every|due", dotted(part.func) or ""):
            return True
    return False


def _picks_few(comparison: cst.Comparison) -> bool:
    return any(isinstance(part.operator, (cst.Equal, cst.In)) for part in comparison.comparisons)


def _asks_for_training(test: cst.BaseExpression) -> bool:
    """`if self.training` and `if not self.training`."""
    inner = (
        test.expression
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
        else test
    )
    return isinstance(inner, cst.Attribute) and inner.attr.value == "training"


def is_threshold_branch(branch: cst.If) -> bool:
    """Whether the branch waits for something: `if step > learning_starts`, `if len(buffer) >= batch_size`."""
    if branch.orelse is not None:
        return False
    return any(isinstance(part, (cst.Comparison, cst.Modulo)) for part in _parts(branch.test))


def leaves_early(block: cst.CSTNode, below: cst.CSTNode) -> bool:
    """Whether `if step % n != 0: continue` stands in the block before the statement `below`."""
    if not isinstance(block, cst.IndentedBlock):
        return False
    for statement in block.body:
        if statement is below:
            return False
        if isinstance(statement, cst.If) and _skips_most(statement):
            return True
    return False


def _skips_most(branch: cst.If) -> bool:
    periodic = any(isinstance(part, cst.Modulo) for part in _parts(branch.test))
    return periodic and _ends_with(branch.body, (cst.Continue,))


def _starts_over(branch: cst.If) -> bool:
    """`if start >= end: start = 0`, `if len(rows) > 9: rows = []`: the branch ends what led to it."""
    compared = {
        dotted(side.args[0].value if isinstance(side, cst.Call) and side.args else side)
        for part in _parts(branch.test)
        if isinstance(part, cst.Comparison)
        and all(isinstance(each.operator, _ORDERS) for each in part.comparisons)
        for side in (part.left, *(each.comparator for each in part.comparisons))
    }
    given = {
        dotted(target.target)
        for line in branch.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for assign in line.body
        if isinstance(assign, cst.Assign)
        for target in assign.targets
    }
    return bool((compared & given) - {None})


def _ends_the_loop(body: cst.BaseSuite) -> bool:
    return _ends_with(body, (cst.Break, cst.Raise))


def _ends_with(body: cst.BaseSuite, kinds: tuple[type[cst.BaseSmallStatement], ...]) -> bool:
    last: cst.CSTNode | None = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, kinds) or _is_exit(last)


def _is_exit(last: cst.CSTNode | None) -> bool:
    call = last.value if isinstance(last, cst.Expr) else None
    return isinstance(call, cst.Call) and dotted(call.func) in {"sys.exit", "exit", "quit"}


def _is_switch(test: cst.BaseExpression) -> bool:
    for part in _parts(test):
        if isinstance(part, (cst.Name, cst.Attribute)):
            name = (dotted(part) or "").rpartition(".")[2].lower()
            if _SWITCH.search(name) and not _RANK.search(name):
                return True
    return False


def _is_about_rank(comparison: cst.Comparison) -> bool:
    sides = [comparison.left, *(part.comparator for part in comparison.comparisons)]
    return any(_RANK.search((dotted(side) or _called(side)).lower()) for side in sides)


def _called(node: cst.BaseExpression) -> str:
    return dotted(node.func) or "" if isinstance(node, cst.Call) else ""


def _parts(test: cst.BaseExpression) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    stack: list[cst.CSTNode] = [test]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(node.children)
    return found


def in_test(file: SourceFile, node: cst.CSTNode) -> bool:
    """Whether the node stands in a unit test, whose loops and loaders look like training and are not."""
    function = file.enclosing(node, cst.FunctionDef)
    return function is not None and function.name.value.startswith(("test_", "_test"))


def is_switched(file: SourceFile, node: cst.CSTNode) -> bool:
    """Whether an `if` around the node decides whether it runs at all; `if __name__ == ...` does not."""
    for above in file.ancestors(node):
        if isinstance(above, cst.FunctionDef):
            return False
        if isinstance(above, cst.If) and not _is_main_guard(above):
            return True
    return False


def _is_main_guard(branch: cst.If) -> bool:
    return isinstance(branch.test, cst.Comparison) and dotted(branch.test.left) == "__name__"
