"""Which statements of a loop wait, and before which others they have to be through."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from hotloop.optimize.catalogue.compute.deferred_sync.deferrable_statements import (
    CannotWait,
    Waiting,
    Written,
    fetches,
    is_written,
    waiting,
    written_by,
)
from hotloop.optimize.catalogue.compute.deferred_sync.loop_scope import Loop
from hotloop.optimize.catalogue.compute.deferred_sync.name_uses import (
    OUTPUT,
    LocalFunctions,
    mentions,
    overlaps,
    stored,
)

_KEEPING = frozenset(
    {
        "no_grad",
        "enable_grad",
        "inference_mode",
        "set_grad_enabled",
        "autocast",
        "record_function",
        "no_sync",
        "accumulate",
    }
)
"""Contexts that mean nothing to numbers and text."""


@dataclass
class Plan:
    """What is changed in one loop.

    Attributes:
        loop: the loop.
        waiting: the statements that wait, in their order.
        through: statements before which all that waits has to run.
        kept: lines that ask for a value and stay as they are, with the reason.
    """

    loop: Loop
    waiting: list[Waiting] = field(default_factory=list)
    through: list[ast.stmt] = field(default_factory=list)
    kept: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    statement: ast.stmt
    head: tuple[ast.AST, ...]
    """What of it is looked at: of a compound statement the part before its blocks, unless those are not entered."""
    sometimes: bool
    """Not every turn comes by it."""
    may_wait: bool


def plan_of(loop: Loop, functions: LocalFunctions) -> Plan:
    """Return what can wait in a loop; nothing where a value steers."""
    return _Planner(loop, functions).plan()


class _Planner:
    def __init__(self, loop: Loop, functions: LocalFunctions) -> None:
        self._loop = loop
        self._places = list(_places(loop.node.body, sometimes=False, may_wait=True))
        self._reach = {
            id(place.statement): functions.reach(place.head, loop.around) for place in self._places
        }
        self._assigned = stored(ast.Module(body=loop.node.body, type_ignores=[])) | stored_in_head(loop)
        self._banned: dict[str, str] = dict.fromkeys(loop.shared, "other code reads it, too")

    def plan(self) -> Plan:
        """Leave out what steers, until nothing does."""
        while True:
            chosen, written = self._choose()
            aliases = self._aliases({each.path for each in written.values() if each.in_place})
            through = self._through(chosen, {each.path for each in written.values()}, aliases)
            if through is not None:
                break
        plan = Plan(self._loop)
        late = {each.path for each in written.values()}
        for place in self._places:
            if id(place.statement) in chosen:
                plan.waiting.append(chosen[id(place.statement)])
            elif any(fetches(part) for part in place.head):
                plan.kept[place.statement.lineno] = self._why(place)
        if not any(kind != "v" for each in plan.waiting for kind in each.kinds):
            return Plan(self._loop, kept=plan.kept)
        plan.through = [place.statement for place in through if late]
        return plan

    def _choose(self) -> tuple[dict[int, Waiting], dict[int, Written]]:
        """Return the statements that may wait: those that fetch, and those that go by what they write."""
        chosen: dict[int, Waiting] = {}
        written: dict[int, Written] = {}
        while True:
            late = {each.path for each in written.values()}
            found = [
                place
                for place in self._places
                if id(place.statement) not in chosen and self._fits(place, late)
            ]
            added = False
            for place in found:
                made = written_by(place.statement)
                assert made is not None
                try:
                    divided = waiting(place.statement, {*late, made.path}, self._assigned)
                except CannotWait as reason:
                    self._ban(made.path, str(reason))
                    return self._choose()
                chosen[id(place.statement)] = divided
                written[id(place.statement)] = made
                added = True
            if not added:
                return self._again(chosen, written)

    def _again(
        self, chosen: dict[int, Waiting], written: dict[int, Written]
    ) -> tuple[dict[int, Waiting], dict[int, Written]]:
        """Divide once more, now that all that is written late is known."""
        late = {each.path for each in written.values()}
        for number, made in chosen.items():
            try:
                chosen[number] = waiting(made.statement, late, self._assigned)
            except CannotWait as reason:
                self._ban(written[number].path, str(reason))
                return self._choose()
        return chosen, written

    def _fits(self, place: _Place, late: set[str]) -> bool:
        made = written_by(place.statement) if place.may_wait else None
        if made is None or is_written(set(self._banned), made.path):
            return False
        return fetches(place.statement) or any(is_written(late, path) for path in mentions(place.statement))

    def _aliases(self, changed: set[str]) -> dict[str, str]:
        """Return names whose objects may hold one that is changed in place, and that one."""
        known = {path: path for path in changed}
        while True:
            more = {
                target: known[path]
                for target, named in self._loop.assignments
                for path in list(known)
                if target not in known and any(overlaps(path, each) for each in named)
            }
            if not more:
                return {name: of for name, of in known.items() if name not in changed}
            known |= more

    def _through(
        self, chosen: dict[int, Waiting], late: set[str], aliases: dict[str, str]
    ) -> list[_Place] | None:
        """Return the places before which all has to run; None: something is banned now, begin again."""
        places: list[_Place] = []
        num_banned = len(self._banned)
        for path in late:
            if any(overlaps(path, each) for part in self._loop.head for each in mentions(part)):
                self._ban(path, f"line {self._loop.node.lineno} goes by it")
        for place in self._places:
            if id(place.statement) in chosen:
                self._ban_aliased(place, aliases)
                continue
            touched = self._touched(place, late, aliases)
            if touched and place.sometimes:
                places.append(place)
            for path in touched if not place.sometimes else ():
                self._ban(path, f"line {place.statement.lineno} uses it in every turn")
        return None if len(self._banned) > num_banned else places

    def _ban_aliased(self, place: _Place, aliases: dict[str, str]) -> None:
        for name, of in aliases.items():
            if any(overlaps(name, path) for path in mentions(place.statement)):
                self._ban(of, f"line {place.statement.lineno} reads it by another name")

    def _touched(self, place: _Place, late: set[str], aliases: dict[str, str]) -> set[str]:
        named = {path for part in place.head for path in mentions(part)}
        reach = self._reach[id(place.statement)]
        own = {path for path in late if reach.touches(path) or any(overlaps(path, each) for each in named)}
        return own | {
            of
            for name, of in aliases.items()
            if reach.touches(name) or any(overlaps(name, each) for each in named)
        }

    def _ban(self, path: str, reason: str) -> None:
        self._banned.setdefault(path, reason)

    def _why(self, place: _Place) -> str:
        if isinstance(place.statement, (ast.If, ast.While)):
            return "it decides where the program goes"
        if not place.may_wait:
            return "it stands in a context of its own"
        made = written_by(place.statement)
        if made is None:
            return "the value steers the program, or leaves the loop"
        reasons = [why for path, why in self._banned.items() if overlaps(path, made.path)]
        what = "what is printed" if made.path == OUTPUT else made.path
        return f"{what}: {reasons[0]}" if reasons else "the value steers the program"


def stored_in_head(loop: Loop) -> set[str]:
    """Return the names that the loop's own header assigns."""
    return stored(loop.node.target) if isinstance(loop.node, ast.For) else set()


def _places(body: list[ast.stmt], *, sometimes: bool, may_wait: bool) -> Iterator[_Place]:
    """Return the statements of a loop's turn, those of inner loops and functions as parts of theirs."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield _Place(statement, (statement.test,), sometimes, may_wait=False)
            for block in (statement.body, statement.orelse):
                yield from _places(block, sometimes=True, may_wait=may_wait)
        elif isinstance(statement, ast.With):
            yield _Place(statement, tuple(statement.items), sometimes, may_wait=False)
            keeps = may_wait and all(_keeps(item) for item in statement.items)
            yield from _places(statement.body, sometimes=sometimes, may_wait=keeps)
        elif isinstance(statement, ast.Try):
            yield from _places(statement.body, sometimes=sometimes, may_wait=may_wait)
            for handler in statement.handlers:
                yield from _places(handler.body, sometimes=True, may_wait=False)
            yield from _places(statement.orelse, sometimes=True, may_wait=may_wait)
            yield from _places(statement.finalbody, sometimes=sometimes, may_wait=False)
        else:
            yield _Place(statement, (statement,), sometimes, may_wait)


def _keeps(item: ast.withitem) -> bool:
    call = item.context_expr
    name = call.func if isinstance(call, ast.Call) else call
    last = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
    return item.optional_vars is None and last in _KEEPING
