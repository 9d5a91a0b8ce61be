"""The calls that train: the backward pass and the update of the parameters."""

from functools import cached_property

import libcst as cst

from hotloop.lint.infer.kinds import Kind
from hotloop.lint.infer.names import dotted
from hotloop.lint.infer.values import Values
from hotloop.lint.read.syntax import method, receiver
from hotloop.source.source_file import SourceFile


class TrainingCalls:
    """The training calls of one file."""

    def __init__(self, file: SourceFile, values: Values) -> None:
        self._file = file
        self._values = values

    @cached_property
    def backward(self) -> list[cst.Call]:
        """Calls that run the backward pass."""
        return [call for call in self._file.all(cst.Call) if self._is_backward(call)]

    def _is_backward(self, call: cst.Call) -> bool:
        if method(call) == "manual_backward" or self._is_scaled_step(call):
            return True
        owner = receiver(call)
        return method(call) == "backward" and not (
            isinstance(owner, cst.Call) and dotted(owner.func) == "super"
        )

    def _is_scaled_step(self, call: cst.Call) -> bool:
        """`loss_scaler(loss, optimizer, ...)`: backward and update in one call, as published loops do it."""
        name = (dotted(call.func) or "").rpartition(".")[2]
        return name.endswith("scaler") and any(
            self._sounds_like_optimizer(arg.value) for arg in call.args[1:]
        )

    @cached_property
    def updates(self) -> list[cst.Call]:
        """Calls that update the parameters."""
        return [call for call in self._file.all(cst.Call) if self._is_optimizer_step(call)]

    def _is_optimizer_step(self, call: cst.Call) -> bool:
        owner = receiver(call)
        if self._is_scaled_step(call):
            return True
        if method(call).partition("_")[0] != "step" or owner is None:  # also step_and_update_lr
            return False
        if self._values.kind(owner) is Kind.OPTIMIZER:
            return True
        if any(self._sounds_like_optimizer(arg.value) for arg in call.args[:1]):
            return True
        return self._sounds_like_optimizer(owner)

    @staticmethod
    def _sounds_like_optimizer(node: cst.CSTNode) -> bool:
        last = (dotted(node) or "").rpartition(".")[2].lower()
        return "optim" in last or last in {"opt", "opt_g", "opt_d", "g_opt", "d_opt"}
