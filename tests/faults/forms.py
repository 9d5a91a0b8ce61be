"""The same statements in the different forms in which programs hold them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tests.faults.case import Base
from tests.faults.inject import Place, Tree, after_imports

Names = Mapping[str, str]
"""A name in the code, in capitals, to the expression that stands for it in the program."""
Form = Callable[[Tree, Sequence[Place], str, Names], None]


def inline(tree: Tree, where: Sequence[Place], code: str, names: Names) -> None:
    """The statements stand in the loop."""
    for body, index in where:
        body[index:index] = _Named(names).visit(ast.parse(code)).body


def helper(tree: Tree, where: Sequence[Place], code: str, names: Names) -> None:
    """A function of the module holds them."""
    parameters = ", ".join(name.lower() for name in names)
    after_imports(tree, f"def follow_up({parameters}):\n{_indented(code, names)}")
    _call(where, f"follow_up({', '.join(names.values())})")


def keywords(tree: Tree, where: Sequence[Place], code: str, names: Names) -> None:
    """A function that is called with keywords, through functools.partial."""
    parameters = ", ".join(["scale", *(name.lower() for name in names)])
    after_imports(
        tree,
        f"import functools\ndef _track({parameters}):\n{_indented(code, names)}\n"
        "track = functools.partial(_track, 1.0)",
    )
    _call(where, f"track({', '.join(f'{name.lower()}={text}' for name, text in names.items())})")


def method(tree: Tree, where: Sequence[Place], code: str, names: Names) -> None:
    """An object that is kept for it has a method."""
    parameters = ", ".join(["self", *(name.lower() for name in names)])
    body = _indented(code, names).replace("\n", "\n    ")
    after_imports(tree, f"class Watcher:\n    def update({parameters}):\n    {body}\n\nwatcher = Watcher()")
    _call(where, f"watcher.update({', '.join(names.values())})")


def hooks(tree: Tree, where: Sequence[Place], code: str, names: Names) -> None:
    """A table of callbacks is gone through."""
    parameters = ", ".join(name.lower() for name in names)
    after_imports(
        tree, f"def _report({parameters}):\n{_indented(code, names)}\n\nHOOKS = {{'end': [_report]}}"
    )
    _call(where, f"for hook in HOOKS['end']:\n    hook({', '.join(names.values())})")


FORMS: tuple[Form, ...] = (inline, helper, keywords, method, hooks)


def after_step(tree: Tree, base: Base, code: str, form: Form = inline) -> None:
    """Run the code once a step, after it; MODEL, INPUTS and OUTPUT in it are the program's."""
    form(tree, base.after_step(tree), code, _used(code, base))


def every(tree: Tree, num: int, code: str) -> str:
    """The code so that it runs every so many times only."""
    if num == 1:
        return code
    after_imports(tree, "import itertools\nTICKS = itertools.count()")
    return f"if next(TICKS) % {num} == 0:\n{_tabbed(code)}"


def before_backward(tree: Tree, base: Base, code: str, form: Form = inline) -> None:
    """Run the code between forward and backward."""
    form(tree, base.before_backward(tree), code, _used(code, base))


def _used(code: str, base: Base) -> Names:
    known = {"MODEL": base.model, "INPUTS": f"({base.inputs},)", "OUTPUT": base.output}
    return {name: text for name, text in known.items() if name in code}


def _indented(code: str, names: Names) -> str:
    lower = {name: name.lower() for name in names}
    return _tabbed(ast.unparse(_Named(lower).visit(ast.parse(code))))


def _tabbed(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def _call(where: Sequence[Place], code: str) -> None:
    for body, index in where:
        body[index:index] = ast.parse(code).body


class _Named(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        text = self._names.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body
