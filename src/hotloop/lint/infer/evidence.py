"""What a name must be, because of how it is used or what it derives from."""

from functools import cached_property

import libcst as cst

from hotloop.lint.infer import torch_names as known
from hotloop.lint.infer.bindings import Bindings
from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.names import Names, dotted
from hotloop.lint.read.syntax import method, receiver
from hotloop.source.source_file import SourceFile


class Evidence:
    """What the uses of names in one file show."""

    def __init__(self, file: SourceFile, names: Names, bindings: Bindings) -> None:
        self._file = file
        self._names = names
        self._bindings = bindings

    def of(self, scope: int, name: str) -> Kind:
        """What the name must be in the scope; UNKNOWN where nothing shows it."""
        return self._all.get((scope, name), Kind.UNKNOWN)

    @cached_property
    def _all(self) -> dict[tuple[int, str], Kind]:
        """What a name must be, because of a method that is called on it in the same scope."""
        evidence: dict[tuple[int, str], Kind] = {}
        for call in self._file.all(cst.Call):
            name, on = method(call), receiver(call)
            text = dotted(on) if on is not None else None
            if text is None:
                continue
            scope = (
                self._bindings.class_scope(call) if text.startswith("self.") else self._bindings.scope(call)
            )
            if name == "backward" and not call.args:
                evidence[(scope, text)] = Kind.TENSOR
            elif name in known.MODULE_EVIDENCE:
                evidence.setdefault((scope, text), Kind.MODULE)
            elif name == "zero_grad":
                evidence.setdefault((scope, text), Kind.OPTIMIZER)
        for call in self._file.all(cst.Call):
            if self._takes_tensor(call):
                text = self._tensor_name(call.args[0].value)
                if text is not None:
                    evidence.setdefault((self._bindings.scope(call), text), Kind.TENSOR)
        return evidence

    def _tensor_name(self, given: cst.BaseExpression) -> str | None:
        """Return `x` for `x`, and for `x[i]` where `x.shape` or `x.size()` shows that `x` is a tensor."""
        if not isinstance(given, cst.Subscript):
            return dotted(given)
        text = dotted(given.value)
        return text if text is not None and (self._bindings.scope(given), text) in self._shaped else None

    @cached_property
    def _shaped(self) -> frozenset[tuple[int, str]]:
        sized = [node for node in self._file.all(cst.Attribute) if node.attr.value in {"shape", "size"}]
        return frozenset((self._bindings.scope(node), dotted(node.value) or "") for node in sized)

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
