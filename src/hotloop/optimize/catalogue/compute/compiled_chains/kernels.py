"""One chain, as it is and compiled: the compiled one runs once both were seen to compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.optimize.comparison.same_values import along, require_same
from hotloop.optimize.comparison.unseen import ends_a_recomputation, unseen
from hotloop.patterns.refusal import NotThis


class CompiledChain:
    """What stands in the place of an expression.

    Args:
        plain: the expression, as a function of what it is computed from.
        backend: of torch.compile.

    Attributes:
        is_on: the compiled one runs; it is changed between forwards alone, parts of which may be computed again.
        agrees: both were seen to compute the same; None: it has not run yet.
        apart: the largest relative difference.
        left: why the compiled one does not run; empty: it may.
        num_calls: of the compiled one.
    """

    def __init__(self, plain: Callable[..., Any], backend: str) -> None:
        self._plain = plain
        self._backend = backend
        self._fused: Callable[..., Any] = plain
        self.is_on = False
        self.agrees: bool | None = None
        self.apart = 0.0
        self.left = ""
        self.num_calls = 0

    def __call__(self, *args: Any) -> Any:
        """Return the expression's value."""
        import torch

        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            return self._plain(*args)
        if self.is_on:
            try:
                value = self._fused(*args)
            except (
                Exception
            ) as error:  # the compiler's, or the program's own: then the plain one raises it again
                if ends_a_recomputation(error):
                    raise
                self._leave(f"{type(error).__name__}: {str(error).strip()[:200]}")
                return self._plain(*args)
            self.num_calls += 1
            return value
        if self.agrees is None:
            self._prove(args)
        return self._plain(*args)

    def _prove(self, args: tuple[Any, ...]) -> None:
        import torch

        try:
            self._fused = torch.compile(self._plain, backend=self._backend)
            with unseen():
                values, gradients = _both(self._plain, args)
                other_values, other_gradients = _both(self._fused, args)
            self.apart = max(
                require_same("outputs", values, other_values),
                require_same("gradients", gradients, other_gradients),
            )
            self.agrees = True
        except NotThis as reason:
            self._leave(str(reason))
        except Exception as error:  # whatever the compiler raises for what it is given
            self._leave(f"{type(error).__name__}: {str(error).strip()[:200]}")

    def _leave(self, reason: str) -> None:
        self.left, self.agrees, self.is_on = reason, False, False


def _both(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return the value, and the gradients of what it is computed from.

    Raises:
        NotThis: it is no tensor.
    """
    import torch

    learns = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    leaves: list[Any] = []

    def leaf(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        copied = value.detach().clone(memory_format=torch.preserve_format)
        if learns and copied.is_floating_point():
            leaves.append(copied.requires_grad_())
        return copied

    value = function(*map(leaf, args))
    if not isinstance(value, torch.Tensor):
        raise NotThis(f"it gives a {type(value).__name__}")
    if not leaves or not value.requires_grad:
        return [value], []
    return [value], list(torch.autograd.grad(value, leaves, along(value, 0), allow_unused=True))
