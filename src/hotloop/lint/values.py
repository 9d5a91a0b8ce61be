"""What an expression gives: a tensor on a device, one on the host, plain Python, or nobody knows.

The inference is cautious: wherever two answers are possible it says UNKNOWN, and the rules abstain.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

import libcst as cst

from hotloop.lint import torch_names as known
from hotloop.lint.names import Names, dotted
from hotloop.lint.source_file import SourceFile
from hotloop.lint.syntax import keyword, method, receiver, string
from hotloop.lint.words import words


class Kind(Enum):
    """What a value is, as far as the source shows."""

    TENSOR = auto()
    """One tensor, on a device if the program uses one."""
    TENSORS = auto()
    """A tensor or a structure of tensors, such as a model's output."""
    HOST_TENSOR = auto()
    """One tensor that is surely in host memory."""
    BATCH = auto()
    """What a loader gives: tensors in host memory, perhaps among other things."""
    NUMPY = auto()
    PLAIN = auto()
    """Numbers, strings, lists, sizes, devices."""
    MODULE = auto()
    LAYER = auto()
    """A module that gives exactly one tensor, such as a loss of torch.nn."""
    LOADER = auto()
    OPTIMIZER = auto()
    UNKNOWN = auto()


ON_DEVICE = frozenset({Kind.TENSOR})
_MODULES = frozenset({Kind.MODULE, Kind.LAYER})


@dataclass(frozen=True)
class _Binding:
    """One place that gives a name its value."""

    number: int
    value: cst.BaseExpression | None
    """None: the value is not an expression (a parameter, an import, an exception)."""
    element: bool
    """The name is an element of the value: unpacking, a loop's target."""
    statement: cst.CSTNode


_DEPTH = 16  # definitions followed backwards; longer chains were not seen in published scripts


class Values:
    """The kinds of the expressions of one file."""

    def __init__(self, file: SourceFile, names: Names) -> None:
        self._file = file
        self._names = names
        self._memo: dict[int, Kind] = {}
        self._open: set[int] = set()

    # -- who binds what --

    @cached_property
    def _bindings(self) -> dict[tuple[int, str], list[_Binding]]:
        """Bindings by scope and name, in reading order."""
        found: dict[tuple[int, str], list[_Binding]] = defaultdict(list)
        for assign in self._file.all(cst.Assign):
            for target in assign.targets:
                self._bind(found, target.target, assign.value, assign)
        for annotated in self._file.all(cst.AnnAssign):
            if annotated.value is not None:
                self._bind(found, annotated.target, annotated.value, annotated)
        for augmented in self._file.all(cst.AugAssign):
            self._bind(found, augmented.target, augmented.value, augmented)
        for named in self._file.all(cst.NamedExpr):
            self._bind(found, named.target, named.value, named)
        for loop in self._file.all(cst.For):
            self._bind(found, loop.target, loop.iter, loop, element=True)
        for item in self._file.all(cst.WithItem):
            if item.asname is not None:
                self._bind(found, item.asname.name, None, item)
        for bindings in found.values():
            bindings.sort(key=lambda binding: binding.number)
        return found

    def _bind(
        self,
        found: dict[tuple[int, str], list[_Binding]],
        target: cst.CSTNode,
        value: cst.BaseExpression | None,
        statement: cst.CSTNode,
        element: bool = False,
    ) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            pairs = self._unpacked(target, value)
            for part, given in pairs:
                self._bind(found, part, given or value, statement, element=element or given is None)
            return
        name = dotted(target)
        if name is None:
            return
        scope = self._class_scope(target) if name.startswith("self.") else self._scope(target)
        number = self._file.number(statement)
        if not isinstance(statement, cst.For):
            number = self._file._last[number]  # a value is read before the name is bound
        found[(scope, name)].append(_Binding(number, value, element, statement))

    @staticmethod
    def _unpacked(
        target: cst.Tuple | cst.List, value: cst.BaseExpression | None
    ) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
        parts = [element.value for element in target.elements]
        if isinstance(value, (cst.Tuple, cst.List)) and len(value.elements) == len(parts):
            return [(part, given.value) for part, given in zip(parts, value.elements, strict=True)]
        return [(part, None) for part in parts]

    def _scope(self, node: cst.CSTNode) -> int:
        outer = self._file.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        return id(outer) if outer is not None else 0

    def _class_scope(self, node: cst.CSTNode) -> int:
        outer = self._file.enclosing(node, cst.ClassDef)
        return id(outer) if outer is not None else 0

    # -- evidence from use --

    @cached_property
    def _used_as(self) -> dict[tuple[int, str], Kind]:
        """What a name must be, because of a method that is called on it in the same scope."""
        evidence: dict[tuple[int, str], Kind] = {}
        for call in self._file.all(cst.Call):
            name, on = method(call), receiver(call)
            text = dotted(on) if on is not None else None
            if text is None:
                continue
            scope = self._class_scope(call) if text.startswith("self.") else self._scope(call)
            if name == "backward":
                evidence[(scope, text)] = Kind.TENSOR
            elif name in known.MODULE_EVIDENCE:
                evidence.setdefault((scope, text), Kind.MODULE)
            elif name == "zero_grad":
                evidence.setdefault((scope, text), Kind.OPTIMIZER)
        for call in self._file.all(cst.Call):
            if self._takes_tensor(call):
                text = dotted(call.args[0].value)
                if text is not None:
                    evidence.setdefault((self._scope(call), text), Kind.TENSOR)
        return evidence

    def _takes_tensor(self, call: cst.Call) -> bool:
        """Whether the first argument is surely a tensor: a loss, or the input of a torch function."""
        if not call.args:
            return False
        if method(call) in {"backward", "manual_backward", "scale"}:
            return True
        called = (dotted(call.func) or "").rpartition(".")[2]
        return called.endswith("scaler") or self._names.of(call.func).startswith("torch.nn.functional.")

    @cached_property
    def module_classes(self) -> dict[str, cst.ClassDef]:
        """Classes of this file that derive from nn.Module, also through one another."""
        classes = {node.name.value: node for node in self._file.all(cst.ClassDef)}
        found: dict[str, cst.ClassDef] = {}
        while True:
            more = {
                name: node
                for name, node in classes.items()
                if name not in found and any(self._is_module_base(base.value, found) for base in node.bases)
            }
            if not more:
                return found
            found.update(more)

    def _is_module_base(self, base: cst.BaseExpression, found: dict[str, cst.ClassDef]) -> bool:
        full = self._names.of(base)
        if full in known.MODULE_BASES or (
            full.startswith("torch.nn.") and full.rpartition(".")[2][:1].isupper()
        ):
            return True
        return isinstance(base, cst.Name) and base.value in found

    # -- the inference --

    def kind(self, node: cst.CSTNode) -> Kind:
        """What the expression gives at the place where it stands."""
        key = id(node)
        if key in self._memo:
            return self._memo[key]
        if key in self._open or len(self._open) > _DEPTH:
            return Kind.UNKNOWN
        self._open.add(key)
        try:
            kind = self._infer(node)
        finally:
            self._open.discard(key)
        if not self._open:
            self._memo[key] = kind
        return kind

    def is_device_tensor(self, node: cst.CSTNode) -> bool:
        """Whether the expression is surely a tensor, and not surely one in host memory."""
        return self.kind(node) is Kind.TENSOR

    def is_module(self, node: cst.CSTNode) -> bool:
        """Whether the expression is surely a module."""
        return self.kind(node) in _MODULES

    def _infer(self, node: cst.CSTNode) -> Kind:
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self._of_name(node)
        if isinstance(node, cst.Call):
            return self._of_call(node)
        if isinstance(node, cst.BinaryOperation):
            return _combined([self.kind(node.left), self.kind(node.right)])
        if isinstance(node, cst.UnaryOperation):
            return Kind.PLAIN if isinstance(node.operator, cst.Not) else self.kind(node.expression)
        if isinstance(node, cst.Comparison):
            return self._of_comparison(node)
        if isinstance(node, cst.Subscript):
            return self._element(self.kind(node.value))
        if isinstance(node, cst.IfExp):
            return _merged([self.kind(node.body), self.kind(node.orelse)])
        if isinstance(node, _PLAIN_SYNTAX):
            return Kind.PLAIN
        return Kind.UNKNOWN

    def _of_comparison(self, node: cst.Comparison) -> Kind:
        if any(
            isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for part in node.comparisons
        ):
            return Kind.PLAIN
        return _combined([self.kind(node.left), *(self.kind(part.comparator) for part in node.comparisons)])

    def _of_name(self, node: cst.Name | cst.Attribute) -> Kind:
        text = dotted(node)
        if text is None or (isinstance(node, cst.Attribute) and not text.startswith("self.")):
            return self._of_attribute(node) if isinstance(node, cst.Attribute) else Kind.UNKNOWN
        if text.startswith("self."):
            return self._of_self(node, text)
        if self._names.of(node) or text in {"True", "False", "None"}:
            return Kind.PLAIN if text in {"True", "False", "None"} else Kind.UNKNOWN
        return self._of_variable(node, text)

    def _of_attribute(self, node: cst.Attribute) -> Kind:
        if self._names.of(node):
            return Kind.UNKNOWN
        owner = self.kind(node.value)
        if owner in {Kind.TENSOR, Kind.HOST_TENSOR}:
            return owner if node.attr.value in known.TENSOR_ATTRIBUTES else Kind.PLAIN
        if owner is Kind.TENSORS:
            return Kind.PLAIN if node.attr.value in {"shape", "dtype", "device"} else Kind.TENSORS
        if owner is Kind.BATCH:
            return Kind.BATCH
        return Kind.UNKNOWN

    def _of_self(self, node: cst.CSTNode, text: str) -> Kind:
        scope = self._class_scope(node)
        bound = self._bindings.get((scope, text), [])
        kinds = [self._of_binding(b) for b in bound]
        found = _merged(kinds) if kinds else Kind.UNKNOWN
        if found is Kind.UNKNOWN:
            found = self._used_as.get((scope, text), Kind.UNKNOWN)
        if found is Kind.UNKNOWN and isinstance(node, cst.Attribute) and not bound and text.count(".") > 1:
            return self._of_attribute(node)
        return found

    def _of_variable(self, node: cst.CSTNode, text: str) -> Kind:
        function = self._file.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        scope = id(function) if function is not None else 0
        bound = self._bindings.get((scope, text), [])
        before = [b for b in bound if b.number < self._file.number(node)]
        if before:
            found = self._at(node, before)
        elif (
            isinstance(function, (cst.FunctionDef, cst.Lambda))
            and (p := _parameter(function, text)) is not None
        ):
            found = self._of_annotation(p)
        elif scope and not bound:
            return self._from_outside(function, text)
        else:
            found = Kind.UNKNOWN
        if found is Kind.UNKNOWN:
            found = self._used_as.get((scope, text), Kind.UNKNOWN)
        return found

    def _from_outside(self, function: cst.CSTNode | None, text: str) -> Kind:
        """A name that a function reads from the functions around it or from the module."""
        outer = self._file.enclosing(function, cst.FunctionDef) if function is not None else None
        scope = id(outer) if outer is not None else 0
        found = _merged(
            [self._of_binding(b) for b in self._bindings.get((scope, text), [])] or [Kind.UNKNOWN]
        )
        if found is Kind.UNKNOWN:
            found = self._used_as.get((scope, text), Kind.UNKNOWN)
        return self._from_outside(outer, text) if found is Kind.UNKNOWN and outer is not None else found

    def _at(self, use: cst.CSTNode, before: list[_Binding]) -> Kind:
        """The nearest earlier binding, and those further up that it may not replace."""
        kinds: list[Kind] = []
        for binding in reversed(before):
            if self._excluded(binding.statement, use):
                continue
            kinds.append(self._of_binding(binding))
            if self._always_runs_before(binding.statement, use):
                break
        return _merged(kinds) if kinds else Kind.UNKNOWN

    def _always_runs_before(self, statement: cst.CSTNode, use: cst.CSTNode) -> bool:
        branch = self._file.enclosing(statement, cst.If, cst.Else, cst.ExceptHandler, cst.Try)
        return branch is None or self._file.inside(use, branch)

    def _excluded(self, statement: cst.CSTNode, use: cst.CSTNode) -> bool:
        """Whether the binding stands in the `if` branch and the use in the `else` of the same statement."""
        for branch in self._file.ancestors(statement):
            if (
                isinstance(branch, cst.If)
                and branch.orelse is not None
                and self._file.inside(use, branch.orelse)
            ):
                return self._file.inside(statement, branch.body)
        return False

    def _of_binding(self, binding: _Binding) -> Kind:
        if binding.value is None:
            return Kind.UNKNOWN
        kind = self.kind(binding.value)
        if isinstance(binding.statement, cst.AugAssign):
            return _combined([kind, self.kind(binding.statement.target)])
        if isinstance(binding.statement, cst.For):
            return self._of_loop_target(binding.statement.iter)
        return self._element(kind) if binding.element else kind

    def _of_loop_target(self, iterable: cst.BaseExpression) -> Kind:
        if isinstance(iterable, cst.Call) and isinstance(iterable.func, cst.Name):
            if iterable.func.value == "range":
                return Kind.PLAIN
            if iterable.func.value in {"enumerate", "tqdm", "zip"} and iterable.args:
                iterable = iterable.args[0].value
        return self._element(self.kind(iterable))

    @staticmethod
    def _element(kind: Kind) -> Kind:
        if kind is Kind.LOADER:
            return Kind.BATCH
        return (
            kind
            if kind in {Kind.TENSOR, Kind.TENSORS, Kind.HOST_TENSOR, Kind.BATCH, Kind.NUMPY}
            else Kind.UNKNOWN
        )

    def _of_annotation(self, parameter: cst.Param) -> Kind:
        if parameter.annotation is None:
            return Kind.UNKNOWN
        full = self._names.of(parameter.annotation.annotation)
        if full in {"torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}:
            return Kind.TENSOR
        if full in {"torch.nn.Module"}:
            return Kind.MODULE
        plain = isinstance(parameter.annotation.annotation, cst.Name)
        return (
            Kind.PLAIN if plain and dotted(parameter.annotation.annotation) in _PLAIN_TYPES else Kind.UNKNOWN
        )

    # -- calls --

    def _of_call(self, call: cst.Call) -> Kind:
        full = self._names.of(call.func)
        if full:
            return self._of_known(call, full)
        if isinstance(call.func, cst.Name):
            if call.func.value in self.module_classes:
                return Kind.MODULE
            if call.func.value in _PLAIN_FUNCTIONS:
                return Kind.PLAIN
            if call.func.value in {"sum", "max", "min", "abs"} and call.args:
                inner = self._element(self.kind(call.args[0].value))
                return inner if inner in {Kind.TENSOR, Kind.NUMPY} else Kind.UNKNOWN
        if isinstance(call.func, cst.Attribute):
            found = self._of_method(call, call.func)
            if found is not Kind.UNKNOWN:
                return found
        return self._of_called_value(call)

    def _of_called_value(self, call: cst.Call) -> Kind:
        callee = self.kind(call.func)
        if callee is Kind.LAYER:
            return Kind.TENSOR
        if callee in {Kind.MODULE, Kind.TENSORS} or (
            callee is Kind.UNKNOWN and self._sounds_like_model(call)
        ):
            return Kind.TENSORS
        return Kind.UNKNOWN

    def _sounds_like_model(self, call: cst.Call) -> bool:
        """A variable, no function of this file and no import, whose name can only mean a network."""
        name = (dotted(call.func) or "").rpartition(".")[2].lower()
        return (
            bool(_MODEL_NAMES.search(name)) and not self._names.of(call.func) and name not in self._functions
        )

    @cached_property
    def _functions(self) -> frozenset[str]:
        return frozenset(function.name.value.lower() for function in self._file.all(cst.FunctionDef))

    def _of_known(self, call: cst.Call, full: str) -> Kind:
        if full in known.FACTORIES:
            return self._made(call)
        if full in known.OPERATIONS:
            given = [self.kind(arg.value) for arg in call.args]
            return Kind.HOST_TENSOR if given and all(k in _HOST_SIDE for k in given) else Kind.TENSOR
        if full.startswith("torch.nn.functional."):
            return Kind.TENSOR
        if full.startswith("numpy."):
            return Kind.NUMPY
        if full in known.LOADERS:
            return Kind.LOADER
        if full.startswith(known.OPTIMIZERS) and full.count(".") == 2 and full[12:13].isupper():
            return Kind.OPTIMIZER
        last = full.rpartition(".")[2]
        if full.startswith("torch.nn.") and last[:1].isupper():
            return Kind.MODULE if full in known.STRUCTURED_MODULES or "parallel" in full else Kind.LAYER
        if full.startswith("torchvision.models.") or full == "torch.compile":
            return Kind.MODULE
        if full.startswith(("transformers.AutoModel",)):
            return Kind.MODULE
        return Kind.UNKNOWN

    def _made(self, call: cst.Call) -> Kind:
        device = keyword(call, "device")
        if device is None:
            return Kind.HOST_TENSOR
        return Kind.HOST_TENSOR if string(device) == "cpu" else Kind.TENSOR

    def _of_method(self, call: cst.Call, func: cst.Attribute) -> Kind:
        name, owner = func.attr.value, self.kind(func.value)
        if owner in _MODULES:
            return owner if name in _MODULE_RETURNS_ITSELF else Kind.UNKNOWN
        if name in {"to", "cuda"} and owner is not Kind.NUMPY:
            return self._moved(call, name, owner)
        if name not in known.TENSOR_METHODS and name not in known.PLAIN_METHODS:
            return Kind.UNKNOWN
        if owner in {Kind.TENSOR, Kind.HOST_TENSOR, Kind.TENSORS, Kind.BATCH}:
            return _after_method(name, owner)
        if owner is Kind.NUMPY:
            return Kind.PLAIN if name in {"item", "tolist"} else Kind.NUMPY
        return Kind.UNKNOWN

    def _moved(self, call: cst.Call, name: str, owner: Kind) -> Kind:
        target = call.args[0].value if call.args else None
        if name == "to" and owner in {Kind.HOST_TENSOR, Kind.TENSOR} and self._is_dtype(target):
            return owner
        if string(target) == "cpu":
            return Kind.HOST_TENSOR if owner in {Kind.TENSOR, Kind.HOST_TENSOR} else Kind.UNKNOWN
        if owner in {Kind.TENSOR, Kind.HOST_TENSOR}:
            return Kind.TENSOR
        return Kind.TENSORS if owner is not Kind.PLAIN else Kind.UNKNOWN

    def _is_dtype(self, node: cst.CSTNode | None) -> bool:
        full = self._names.of(node) if node is not None else ""
        return full.startswith("torch.") and full.rpartition(".")[2].rstrip("0123456789") in _DTYPES


def _after_method(name: str, owner: Kind) -> Kind:
    if name in {"item", "tolist"} or name in known.PLAIN_METHODS:
        return Kind.PLAIN
    if name == "numpy":
        return Kind.NUMPY
    if name == "cpu":
        return Kind.HOST_TENSOR
    return Kind.HOST_TENSOR if owner in {Kind.HOST_TENSOR, Kind.BATCH} else Kind.TENSOR


def _combined(kinds: list[Kind]) -> Kind:
    """What arithmetic between values of these kinds gives."""
    if Kind.TENSOR in kinds and Kind.NUMPY not in kinds:
        return Kind.TENSOR
    if all(kind is Kind.PLAIN for kind in kinds):
        return Kind.PLAIN
    if Kind.NUMPY in kinds and all(kind in {Kind.NUMPY, Kind.PLAIN} for kind in kinds):
        return Kind.NUMPY
    if Kind.HOST_TENSOR in kinds and all(kind in _HOST_SIDE for kind in kinds):
        return Kind.HOST_TENSOR
    return Kind.UNKNOWN


def _merged(kinds: list[Kind]) -> Kind:
    """What a name is that may hold any of these."""
    distinct = set(kinds)
    if len(distinct) == 1:
        return kinds[0]
    if distinct <= {Kind.TENSOR, Kind.TENSORS}:
        return Kind.TENSORS
    return Kind.MODULE if distinct <= {Kind.MODULE, Kind.LAYER} else Kind.UNKNOWN


def _parameter(function: cst.FunctionDef | cst.Lambda, name: str) -> cst.Param | None:
    given = function.params
    every = [*given.posonly_params, *given.params, *given.kwonly_params]
    return next((param for param in every if param.name.value == name), None)


_MODEL_NAMES = re.compile(
    r"^(model|net|network|criterion|generator|discriminator|encoder|decoder|classifier)$|_model$"
)
_HOST_SIDE = frozenset({Kind.HOST_TENSOR, Kind.PLAIN, Kind.NUMPY, Kind.BATCH})
_PLAIN_SYNTAX = (
    cst.Integer,
    cst.Float,
    cst.SimpleString,
    cst.FormattedString,
    cst.ConcatenatedString,
    cst.Dict,
    cst.BooleanOperation,
)
_PLAIN_FUNCTIONS = words(
    """
    len int float str bool range list dict set repr round isinstance format open
    """
)
_PLAIN_TYPES = frozenset({"int", "float", "str", "bool", "list", "dict"})
_MODULE_RETURNS_ITSELF = words(
    """
    to cuda cpu half float double bfloat16 train eval requires_grad_ apply
    """
)
_DTYPES = frozenset({"float", "int", "uint", "bfloat", "long", "bool", "half", "double", "short", "complex"})
