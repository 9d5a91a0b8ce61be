"""The hook points at which an optimization may act inside the user's process.

Every callback may raise: the probe then switches this activation off, keeps the reason, and the program goes on as
if it had never been there. Callbacks run in the user's process and must leave no trace in pickled modules.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Activation:
    """What one optimization does at the hook points; the default at each is nothing.

    Attributes:
        name: the optimization's name.
        fixed: whether it is on for as long as the process lives, although it could be switched.
        wraps_at_once: whether the first training forward is wrapped already.
        made_with: the arguments that it was made with, by place and by keyword.
    """

    name: str = ""
    fixed: bool = False
    wraps_at_once: bool = False
    made_with: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the arguments: by them the same is made in another process (`description`)."""
        made = super().__new__(cls)
        made.made_with = (args, kwargs)
        return made

    def on_source(self, path: str, tree: Any, names: dict[str, Any]) -> bool:  # noqa: ARG002
        """Change the tree of a file of the user's that is about to run; return whether anything was changed.

        Only of optimizations whose class says `edits_source`; torch may not have been imported yet. The file itself is
        never touched. What is new takes the line and column of what it stands for, so that tracebacks name the user's.

        Args:
            path: of the file.
            tree: its `ast.Module`, changed in place.
            names: is filled with what new code refers to, by names that begin with `_hotloop`.
        """
        return False

    def on_torch(self) -> None:
        """Called once, when `import torch` has finished: global flags, thread counts."""

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords that `DataLoader.__init__` is called with.

        Args:
            keywords: all arguments of the call by name, positional ones included (`dataset` too); defaults absent.
        """
        return keywords

    def on_batch(self, batch: Any) -> Any:
        """Return what the training loop receives instead of a batch that a DataLoader yielded."""
        return batch

    def on_optimizer(self, cls: type, keywords: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return the keywords that an optimizer class of torch is constructed with (`params` not among them)."""
        return keywords

    def on_root(self, module: Any) -> None:
        """Called once for each trained root module, just before its first training forward."""

    def wrap_forward(self, module: Any, call: Any) -> Any:  # noqa: ARG002
        """Return what is called instead of `call` for this root's training forwards (same signature)."""
        return call

    def forward_context(self, module: Any) -> AbstractContextManager[Any] | None:  # noqa: ARG002
        """Return a context manager, made once and entered around every training forward of this root, or None."""
        return None

    def on_forward_inputs(
        self,
        module: Any,  # noqa: ARG002
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, Any]:
        """Return the arguments with which a training forward of this root is called."""
        return args, kwargs

    def on_forward_output(self, module: Any, output: Any) -> Any:  # noqa: ARG002
        """Return what the user's code receives from a training forward of this root."""
        return output

    def overrides(self, hook: str) -> bool:
        """Whether this activation does something at the hook point (the recorder skips those that do not)."""
        return getattr(type(self), hook) is not getattr(Activation, hook)

    def effect(self) -> tuple[bool, str]:
        """Return whether it was seen to act, and the evidence: what was seen, with its value."""
        return False, "never looked"
