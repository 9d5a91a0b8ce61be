"""What an expression gives: a tensor on a device, one on the host, plain Python, or nobody knows.

The inference is cautious: wherever two answers are possible it says UNKNOWN, and the rules abstain.
"""

import re

import libcst as cst

from hotloop.lint.infer import torch_names as known
from hotloop.lint.infer.bindings import Binding, Bindings
from hotloop.lint.infer.evidence import Evidence
from hotloop.lint.infer.functions import Functions
from hotloop.lint.infer.kinds import Kind, after_method, combined, merged
from hotloop.lint.infer.library_calls import result_of
from hotloop.lint.infer.names import Names, dotted
from hotloop.lint.name_lists import words
from hotloop.lint.read.syntax import string
from hotloop.source.source_file import SourceFile

_MODULES = frozenset({Kind.MODULE, Kind.LAYER})


_DEPTH = 16  # definitions followed backwards; longer chains were not seen in published scripts


class Values:
    """The kinds of the expressions of one file."""

    def __init__(self, file: SourceFile, names: Names, bindings: Bindings) -> None:
        self._file = file
        self._names = names
        self._bindings = bindings
        self.functions = Functions(file, names)
        self._evidence = Evidence(file, names, self._bindings)
        self._memo: dict[int, Kind] = {}
        self._open: set[int] = set()

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

    @property
    def module_classes(self) -> dict[str, cst.ClassDef]:
        """Classes of this file that derive from nn.Module."""
        return self._evidence.module_classes

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
            return combined([self.kind(node.left), self.kind(node.right)])
        if isinstance(node, cst.UnaryOperation):
            return Kind.PLAIN if isinstance(node.operator, cst.Not) else self.kind(node.expression)
        if isinstance(node, cst.Comparison):
            return self._of_comparison(node)
        if isinstance(node, cst.Subscript):
            return self._element(self.kind(node.value))
        if isinstance(node, cst.IfExp):
            return merged([self.kind(node.body), self.kind(node.orelse)])
        if isinstance(node, _PLAIN_SYNTAX):
            return Kind.PLAIN
        return Kind.UNKNOWN

    def _of_comparison(self, node: cst.Comparison) -> Kind:
        if any(
            isinstance(part.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for part in node.comparisons
        ):
            return Kind.PLAIN
        return combined([self.kind(node.left), *(self.kind(part.comparator) for part in node.comparisons)])

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
        scope = self._bindings.class_scope(node)
        bound = self._bindings.of(scope, text)
        kinds = [self._of_binding(b) for b in bound]
        found = merged(kinds) if kinds else Kind.UNKNOWN
        if found is Kind.UNKNOWN:
            found = self._evidence.of(scope, text)
        if found is Kind.UNKNOWN and isinstance(node, cst.Attribute) and not bound and text.count(".") > 1:
            return self._of_attribute(node)
        return found

    def _of_variable(self, node: cst.CSTNode, text: str) -> Kind:
        function = self._file.enclosing(node, cst.FunctionDef, cst.Lambda, cst.ClassDef)
        scope = id(function) if function is not None else 0
        bound = self._bindings.of(scope, text)
        before = [b for b in bound if b.number < self._file.number(node)]
        if before:
            found = self._at(node, before)
        elif (
            isinstance(function, (cst.FunctionDef, cst.Lambda))
            and (p := _parameter(function, text)) is not None
        ):
            found = self._of_annotation(p)
        elif scope and not bound:
            found = self._from_outside(function, text)
        else:
            found = Kind.UNKNOWN
        shown = self._evidence.of(scope, text)
        if found is Kind.UNKNOWN or (found is Kind.TENSORS and shown is Kind.TENSOR):
            found = shown
        return found

    def _from_outside(self, function: cst.CSTNode | None, text: str) -> Kind:
        """A name that a function reads from the functions around it or from the module."""
        outer = self._file.enclosing(function, cst.FunctionDef) if function is not None else None
        scope = id(outer) if outer is not None else 0
        found = merged([self._of_binding(b) for b in self._bindings.of(scope, text)] or [Kind.UNKNOWN])
        if found is Kind.UNKNOWN:
            found = self._evidence.of(scope, text)
        return self._from_outside(outer, text) if found is Kind.UNKNOWN and outer is not None else found

    def _at(self, use: cst.CSTNode, before: list[Binding]) -> Kind:
        """The nearest earlier binding, and those further up that it may not replace."""
        kinds: list[Kind] = []
        for binding in reversed(before):
            if self._excluded(binding.statement, use):
                continue
            kinds.append(self._of_binding(binding))
            if self._always_runs_before(binding.statement, use):
                break
        return merged(kinds) if kinds else Kind.UNKNOWN

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

    def _of_binding(self, binding: Binding) -> Kind:
        if binding.value is None:
            return Kind.UNKNOWN
        kind = self.kind(binding.value)
        if isinstance(binding.statement, cst.AugAssign):
            return combined([kind, self.kind(binding.statement.target)])
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

    def _of_call(self, call: cst.Call) -> Kind:
        full = self._names.of(call.func)
        if full:
            return result_of(full, call, [self.kind(arg.value) for arg in call.args])
        if isinstance(call.func, cst.Name):
            if call.func.value in self._evidence.module_classes:
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
        function = self.functions.callee(call)
        if function is not None:
            returned = self.functions.returned(function)
            return merged([self.kind(value) for value in returned]) if returned else Kind.UNKNOWN
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
            bool(_MODEL_NAMES.search(name))
            and not self._names.of(call.func)
            and name not in self.functions.by_name
        )

    def _of_method(self, call: cst.Call, func: cst.Attribute) -> Kind:
        name, owner = func.attr.value, self.kind(func.value)
        if owner in _MODULES:
            return owner if name in _MODULE_RETURNS_ITSELF else Kind.UNKNOWN
        if name in {"to", "cuda"} and owner is not Kind.NUMPY:
            return self._moved(call, name, owner)
        if name not in known.TENSOR_METHODS and name not in known.PLAIN_METHODS:
            return Kind.UNKNOWN
        if owner in {Kind.TENSOR, Kind.HOST_TENSOR, Kind.TENSORS, Kind.BATCH}:
            return after_method(name, owner)
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


def _parameter(function: cst.FunctionDef | cst.Lambda, name: str) -> cst.Param | None:
    given = function.params
    every = [*given.posonly_params, *given.params, *given.kwonly_params]
    return next((param for param in every if param.name.value == name), None)


_MODEL_NAMES = re.compile(
    r"^(model|net|network|criterion|generator|discriminator|encoder|decoder|classifier)$|_model$"
)
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
