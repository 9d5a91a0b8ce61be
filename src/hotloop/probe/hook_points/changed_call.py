"""The call of one root module, as the activations change it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.probe import Probe


class ChangedCall:
    """Stands where `Module._call_impl` would: there are as many frames as without us.

    Args:
        probe: the probe, which drops activations that fail.
        module_of: returns the module; None when it is gone.
        infers: the program trains nothing: forwards without gradients are changed, too.
        on_ready: called when the activations have prepared the module.
    """

    def __init__(
        self, probe: Probe, module_of: Callable[[], Any], *, infers: bool, on_ready: Callable[[], None]
    ) -> None:
        self._probe = probe
        self._module_of = module_of
        self._infers = infers
        self._on_ready = on_ready
        self._contexts: list[AbstractContextManager[Any]] = []
        self._inputs: list[Activation] = []
        self._outputs: list[Activation] = []
        self._ready = False
        self._wrapped: Any = None
        self._early: Any = None
        """What is called until then."""

    def __call__(self, plain: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call the module, changed.

        Args:
            plain: what would be called.
            args: of the module.
            kwargs: likewise.
        """
        if not self._ready and not self._prepare(plain):
            return plain(*args, **kwargs)
        args, kwargs = self._change_inputs(args, kwargs)
        call = self._wrapped or self._early or shortest(self._module_of(), plain)
        if not self._contexts:
            return self._change_output(call(*args, **kwargs))
        with ExitStack() as stack:
            for context in self._contexts:
                stack.enter_context(context)
            output = call(*args, **kwargs)
        return self._change_output(output)

    def wrap(self, compiled: Any) -> None:
        """Let the activations replace the call (compilation), once the search for roots is over.

        Args:
            compiled: the call that the program had compiled in place; None: it had not.
        """
        if not self._ready or self._wrapped is not None:
            return
        self._wrapped = self._wrap(compiled or self._module_of()._call_impl, self._wrapping())

    def _prepare(self, plain: Any) -> bool:
        """Let the activations prepare the module, at its first training forward; return whether this is one."""
        module = self._module_of()
        if not (self._infers or any(parameter.requires_grad for parameter in module.parameters())):
            return False
        self._ready = True
        for activation in list(self._probe.activations):
            try:
                activation.on_root(module)
                context = activation.forward_context(module)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "on_root")
                continue
            if context is not None:
                self._contexts.append(context)
        self._inputs = self._probe.acting("on_forward_inputs")
        self._outputs = self._probe.acting("on_forward_output")
        self._on_ready()
        if self._wrapped is None:  # other roots may follow, so nothing is compiled yet
            self._early = self._wrap(plain, [each for each in self._wrapping() if each.wraps_at_once])
        return True

    def _wrapping(self) -> list[Activation]:
        return self._probe.acting("wrap_forward")

    def _wrap(self, call: Any, acting: list[Activation]) -> Any:
        """Return the call as these activations change it; None: none does."""
        for activation in acting:
            try:
                call = activation.wrap_forward(self._module_of(), call)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._probe.drop(activation, "wrap_forward")
        return call if acting else None

    def _change_inputs(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        for activation in self._inputs:
            try:
                args, kwargs = activation.on_forward_inputs(self._module_of(), args, kwargs)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._inputs = [other for other in self._inputs if other is not activation]
                self._probe.drop(activation, "on_forward_inputs")
        return args, kwargs

    def _change_output(self, output: Any) -> Any:
        for activation in self._outputs:
            try:
                output = activation.on_forward_output(self._module_of(), output)
            except Exception:  # an optimization that fails is dropped, the program goes on
                self._outputs = [other for other in self._outputs if other is not activation]
                self._probe.drop(activation, "on_forward_output")
        return output


def shortest(module: Any, plain: Any) -> Any:
    """Return what `Module._call_impl` would call at once, where it is what is called and has no hooks to call."""
    from torch.nn.modules.module import _has_any_global_hook

    own = getattr(plain, "__func__", None) is type(module)._call_impl
    hooked = (
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
    return plain if hooked or not own or _has_any_global_hook() else module.forward
