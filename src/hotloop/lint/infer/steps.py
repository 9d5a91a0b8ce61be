"""Which code runs once per training step.

A step loop is the innermost loop around a backward call or an optimizer step, directly or through functions
of the same file. What such a loop calls in the same file, `forward` of modules, the step hooks of trainers and
functions that do a whole step for a loop of another file run with it.
"""

from functools import cached_property

import libcst as cst

from hotloop.lint.infer.guards import in_test, is_rare_branch, is_threshold_branch, leaves_early
from hotloop.lint.infer.names import Names, dotted
from hotloop.lint.infer.training_calls import TrainingCalls
from hotloop.lint.infer.values import Values
from hotloop.lint.name_lists import words
from hotloop.source.source_file import SourceFile

Loop = cst.For | cst.While
_LOOPS = (cst.For, cst.While)
_HOOKS = frozenset({"training_step", "compute_loss"})
_HOOK_BASES = ("LightningModule", "Trainer")


class Steps:
    """The training steps of one file."""

    def __init__(self, file: SourceFile, names: Names, values: Values) -> None:
        self._file = file
        self._names = names
        self._values = values
        self._calls = TrainingCalls(file, values)

    @property
    def backward_calls(self) -> list[cst.Call]:
        """Calls that run the backward pass."""
        return self._calls.backward

    @property
    def optimizer_steps(self) -> list[cst.Call]:
        """Calls that update the parameters."""
        return self._calls.updates

    @property
    def functions(self) -> dict[str, list[cst.FunctionDef]]:
        """The functions of this file by name."""
        return self._values.functions.by_name

    def callee(self, call: cst.Call) -> cst.FunctionDef | None:
        """The function of this file that a call surely runs."""
        return self._values.functions.callee(call)

    @cached_property
    def _training_functions(self) -> dict[int, cst.FunctionDef]:
        return self._holding([*self.backward_calls, *self.optimizer_steps])

    def _holding(self, calls: list[cst.Call]) -> dict[int, cst.FunctionDef]:
        """Functions that hold one of the calls outside any loop of their own, also through one another."""
        found: dict[int, cst.FunctionDef] = {}
        waiting: list[cst.CSTNode] = [*calls]
        callers = self._callers
        while waiting:
            holder = self._file.enclosing(waiting.pop(), cst.FunctionDef, cst.For, cst.While)
            if isinstance(holder, cst.FunctionDef) and id(holder) not in found:
                found[id(holder)] = holder
                waiting.extend(callers.get(id(holder), []))
                outer = self._file.enclosing(holder, cst.FunctionDef, cst.ClassDef)
                if isinstance(outer, cst.FunctionDef):
                    waiting.extend(self._mentions(outer, holder))
        return found

    def _mentions(self, outer: cst.FunctionDef, closure: cst.FunctionDef) -> list[cst.CSTNode]:
        """Where a function passes one of its own functions on, as `optimizer.step(closure)` does."""
        name = closure.name.value
        return [
            a
            for a in self._file.under(outer, cst.Arg)
            if isinstance(a.value, cst.Name) and a.value.value == name
        ]

    @cached_property
    def _callers(self) -> dict[int, list[cst.Call]]:
        found: dict[int, list[cst.Call]] = {}
        for call in self._file.all(cst.Call):
            callee = self.callee(call)
            if callee is not None:
                found.setdefault(id(callee), []).append(call)
        return found

    @cached_property
    def loops(self) -> list[Loop]:
        """The step loops, in reading order."""
        if not self.backward_calls or not self._updates_parameters:
            return []
        places: list[cst.CSTNode] = [*self.backward_calls, *self.optimizer_steps]
        for function in self._training_functions.values():
            places.extend(self._callers.get(id(function), []))
        found: dict[int, Loop] = {}
        for place in places:
            loop = self._file.enclosing(place, cst.For, cst.While, cst.FunctionDef)
            if isinstance(loop, cst.FunctionDef):
                loop = self._loop_of_closure(loop)
            if (
                isinstance(loop, _LOOPS)
                and not in_test(self._file, loop)
                and not self._file.inside(place, _head(loop))
            ):
                found[self._file.number(loop)] = loop
        return [found[number] for number in sorted(found)]

    def _loop_of_closure(self, function: cst.FunctionDef) -> Loop | None:
        loop = self._file.enclosing(function, cst.For, cst.While, cst.FunctionDef, cst.ClassDef)
        return loop if isinstance(loop, _LOOPS) else None

    @cached_property
    def _updates_parameters(self) -> bool:
        return bool(self.optimizer_steps) or any(
            node.attr.value == "grad" for node in self._file.all(cst.Attribute)
        )

    @cached_property
    def _steps_of_others(self) -> list[cst.FunctionDef]:
        """Functions that do one whole step and that nothing here calls: the loop stands in another file."""
        updating = self._holding(self.optimizer_steps)
        return [
            function
            for key, function in self._holding(self.backward_calls).items()
            if key in updating
            and key not in self._callers
            and function.name.value not in _NOT_PER_STEP
            and not in_test(self._file, function.body)
        ]

    @cached_property
    def _roots(self) -> dict[int, cst.CSTNode]:
        """Loop bodies, branches of them, and functions that run once per step."""
        roots: dict[int, cst.CSTNode] = {}
        for loop in self.loops:
            root = self._training_branch(loop)
            roots[id(root)] = root
        for hook in self._hooks:
            roots[id(hook)] = hook
        for function in [*self._forwards, *self._closures, *self._steps_of_others]:
            roots[id(function)] = function
        self._follow_calls(roots)
        return roots

    def _follow_calls(self, roots: dict[int, cst.CSTNode]) -> None:
        waiting = list(roots.values())
        while waiting:
            root = waiting.pop()
            for call in self._file.under(root, cst.Call):
                callee = self.callee(call)
                if callee is None or id(callee) in roots or callee.name.value in _NOT_PER_STEP:
                    continue
                if self._reaches(call, root):
                    roots[id(callee)] = callee
                    waiting.append(callee)

    def _training_branch(self, loop: Loop) -> cst.CSTNode:
        """The loop's body, or the branch of it that alone trains: `if step > learning_starts: ...`."""
        calls = [c for c in [*self.backward_calls, *self.optimizer_steps] if self._file.inside(c, loop.body)]
        branch: cst.CSTNode = loop.body
        for candidate in self._file.under(loop.body, cst.If):
            inner = calls and all(self._file.inside(call, candidate.body) for call in calls)
            if (
                inner
                and self._file.enclosing(candidate, cst.For, cst.While) is loop
                and is_threshold_branch(candidate)
            ):
                branch = candidate.body
        return branch

    @cached_property
    def _closures(self) -> list[cst.FunctionDef]:
        """Functions that `optimizer.step(closure)` calls."""
        passed = {dotted(arg.value) for call in self.optimizer_steps for arg in call.args}
        return [function for function in self._training_functions.values() if function.name.value in passed]

    @cached_property
    def _hooks(self) -> list[cst.FunctionDef]:
        return [f for name in _HOOKS for f in self.functions.get(name, []) if self._is_hook(f)]

    def _is_hook(self, function: cst.FunctionDef) -> bool:
        owner = self._file.enclosing(function, cst.ClassDef)
        if owner is None:
            return False
        bases = [dotted(base.value) or "" for base in owner.bases]
        return any(base.endswith(_HOOK_BASES) for base in bases)

    @cached_property
    def _forwards(self) -> list[cst.FunctionDef]:
        found = []
        for owner in self._values.module_classes.values():
            for statement in owner.body.body:
                if not isinstance(statement, cst.FunctionDef) or statement.name.value != "forward":
                    continue
                if not any("grad" in (dotted(d.decorator) or _called(d)) for d in statement.decorators):
                    found.append(statement)
        return found

    def runs_each_step(self, node: cst.CSTNode) -> bool:
        """Whether the node runs once or more in (nearly) every training step."""
        return any(self._reaches(node, root) for root in self._roots_above(node))

    def in_step_loop(self, node: cst.CSTNode) -> bool:
        """As `runs_each_step`, but written in the loop (or a trainer's hook) or in a function it calls.

        A module's `forward` alone does not count: it may be used for inference only.
        """
        forwards = {id(forward) for forward in self._forwards}
        return any(id(root) not in forwards and self._reaches(node, root) for root in self._roots_above(node))

    def _roots_above(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return [above for above in (node, *self._file.ancestors(node)) if id(above) in self._roots]

    def _reaches(self, node: cst.CSTNode, root: cst.CSTNode) -> bool:
        """Whether every turn of the root comes to the node."""
        below = node
        for above in self._file.ancestors(node):
            if above is root and not isinstance(root, cst.FunctionDef):
                return not leaves_early(above, below)
            if isinstance(above, cst.FunctionDef):
                return above is root and below is above.body
            if isinstance(above, (cst.Lambda, cst.ClassDef, cst.ExceptHandler, cst.Raise, cst.Assert)):
                return False
            if is_rare_branch(above, below) or leaves_early(above, below):
                return False
            below = above
        return False

    def loop_of(self, node: cst.CSTNode) -> Loop | None:
        """The step loop in whose body the node stands."""
        numbers = {id(loop) for loop in self.loops}
        for above in self._file.ancestors(node):
            if isinstance(above, cst.FunctionDef):
                return None
            if isinstance(above, _LOOPS) and id(above) in numbers and self._file.inside(node, above.body):
                return above
        return None


def _called(decorator: cst.Decorator) -> str:
    call = decorator.decorator
    return dotted(call.func) or "" if isinstance(call, cst.Call) else ""


def _head(loop: Loop) -> cst.CSTNode:
    return loop.iter if isinstance(loop, cst.For) else loop.test


# Called from a step only now and then, whatever the guard looks like.
_NOT_PER_STEP = words(
    "evaluate validate save_checkpoint main test inference predict postprocess generate sample"
)
