"""The program's step as the virtual GPU sees it: phases, modules, and what is parameter, gradient, optimizer state."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.autograd import graph
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hotloop.probe.virtual_gpu.storages import Storages

STEPS_WITH_NEW_MODELS = 3
"""Steps after which models that no step calls, such as an average of the weights, are looked for."""


class Training:
    """Follows the training steps of this process."""

    def __init__(self) -> None:
        self.storages: Storages | None = None
        """Set once there is a device."""
        self._called: weakref.WeakKeyDictionary[Any, list[int]] = weakref.WeakKeyDictionary()
        """By outermost module of a forward with gradients: the fewest and the most elements of its first tensor."""
        self.batch_size: int | None = None
        """Size of the first dimension of the first tensor that a step gives to a model, as the program has it."""
        self.row_counts: set[int] = set()
        """First dimensions of what has a row for each sample, or for each token of all samples (flattened labels)."""
        self._is_first = True
        """No model was called in this step so far."""
        self.watches_batch = True
        """False while a configuration gives it other batches."""
        self.num_steps = 0
        self.parameters: set[int] = set()
        self.gradients: set[int] = set()
        self.states: set[int] = set()
        self.around_loss: list[Callable[[bool], None]] = []
        """Called with True before a forward of the root, and with False before the backward of what it gave."""
        self._makes_loss = False
        """Since a forward of the root, until its backward."""
        self.adopt: Callable[[Any], None] = lambda _: None
        """Given each module that is called from outside a model (`World.adopt`)."""
        self.on_step: Callable[[], None] = lambda: None
        """Called after each step of the first optimizer that was seen; without one after each backward."""
        self._optimizer: weakref.ref[Any] | None = None
        """The one whose steps count. Not kept alive: a program that trains a second model lets the first one go."""
        self._has_optimizer = False
        self.after_forward: Callable[[], None] = lambda: None
        """Called after each outermost forward, with gradients or without."""
        self._phase = "start"
        self._path: list[str] = []
        self._names: dict[int, str] = {}

    @property
    def roots(self) -> list[Any]:
        """The models that the steps train, in the order of their first calls: a backbone and its head are two."""
        called = list(self._called)
        parts = {part for module in called for part in module.modules() if part is not module}
        return [module for module in called if module not in parts]

    @property
    def input_sizes(self) -> list[int]:
        """The fewest and the most elements of a model's first tensor, over the steps: of the model that varies most."""
        return max(
            filter(None, self._called.values()), key=lambda sizes: sizes[1] / max(1, sizes[0]), default=[]
        )

    def place(self) -> tuple[str, str]:
        """Return the phase, and the path of the innermost module."""
        return self._phase, self._path[-1] if self._path else ""

    def install(self) -> None:
        """Follow every module, backward and optimizer of this process."""
        modules.register_module_forward_pre_hook(self._enter)
        modules.register_module_forward_hook(self._leave, always_call=True)
        register_optimizer_step_pre_hook(self._before_optimizer)
        register_optimizer_step_post_hook(self._after_optimizer)
        optimizers: Any = torch.optim.Optimizer
        patch = optimizers._patch_step_function

        def patch_step_function(optimizer: Any) -> None:
            self._has_optimizer = True
            patch(optimizer)

        optimizers._patch_step_function = patch_step_function
        run = graph._engine_run_backward

        def run_backward(*args: Any, **kwargs: Any) -> Any:
            outer, self._phase = self._phase, "backward"
            if outer != "backward":
                self._tell_loss(False)
            if self.storages is not None:
                self.storages.backward_begins()
            try:
                return run(*args, **kwargs)
            finally:
                self._phase = "between" if outer == "start" else outer
                if outer != "backward" and not self._has_optimizer:
                    self._step_by_hand()

        torch.autograd._engine_run_backward = run_backward
        graph._engine_run_backward = run_backward

    def _enter(self, module: Any, args: Any) -> None:
        if not self._path:
            self.adopt(module)
            if self._phase != "backward" and torch.is_grad_enabled():
                self._begin(module, args)
        self._path.append(self._names.get(id(module), type(module).__name__))

    def _begin(self, module: Any, args: Any) -> None:
        if not any(each.requires_grad for each in module.parameters()):
            return
        if module not in self._called:
            self._called[module] = []
            self._names |= {id(each): name or type(module).__name__ for name, each in module.named_modules()}
        given = pytree.tree_leaves((args, _named_inputs()))
        first = next((each for each in given if isinstance(each, torch.Tensor) and each.dim()), None)
        if first is not None and self.watches_batch:
            self._note_batch(module, first)
        self._phase = "forward"
        self._tell_loss(True)

    def _note_batch(self, module: Any, given: torch.Tensor) -> None:
        if self._is_first:
            self._is_first, self.batch_size, self.row_counts = False, given.shape[0], set()
        tokens = 1 if given.is_floating_point() else 2
        self.row_counts |= {given.shape[0], math.prod(given.shape[:tokens])}
        sizes = [*self._called[module], given.numel()]
        self._called[module] = [min(sizes), max(sizes)]

    def _leave(self, *_: Any) -> None:
        if self._path:
            self._path.pop()
        if not self._path:
            self.after_forward()

    def _tell_loss(self, begins: bool) -> None:
        if begins != self._makes_loss:
            self._makes_loss = begins
            for tell in self.around_loss:
                tell(begins)

    def _step_by_hand(self) -> None:
        """A backward of a program without an optimizer is a step: what it does with the gradients comes after."""
        for each in (each for root in self.roots for each in root.parameters()):
            self._note(self.gradients, each.grad)
        self._note_models()
        self._phase = "between"
        self._step_is_over()

    def _before_optimizer(self, optimizer: Any, *_: Any) -> None:
        self._phase = "optimizer"
        for parameter in _parameters(optimizer):
            self._note(self.parameters, parameter)
            self._note(self.gradients, parameter.grad)

    def _after_optimizer(self, optimizer: Any, *_: Any) -> None:
        self._phase = "between"
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                self._note(self.states, value)
        self._note_models()
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = weakref.ref(optimizer)
        if optimizer is self._optimizer():
            self._step_is_over()

    def _note_models(self) -> None:
        for model in _all_modules() if self.num_steps < STEPS_WITH_NEW_MODELS else self.roots:
            for each in (*model.parameters(), *model.buffers()):
                self._note(self.parameters, each)

    def _step_is_over(self) -> None:
        self.num_steps += 1
        self._is_first = True
        if self.storages is not None:
            self.storages.num_steps = self.num_steps
        self.on_step()

    def class_of(self, number: int) -> str:
        """Return what a storage is: parameters, gradients, optimizer_state, inputs, activations or temporaries."""
        record = self.storages.records[number] if self.storages is not None else None
        for name, numbers in (
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimizer_state", self.states),
        ):
            if number in numbers:
                return name
        if record is None or (record.operator == "_to_copy" and record.phase in {"start", "between"}):
            return "inputs"
        return "activations" if record.saved else "temporaries"

    def _note(self, numbers: set[int], tensor: Any) -> None:
        if (
            self.storages is None
            or not isinstance(tensor, torch.Tensor)
            or tensor.layout is not torch.strided
        ):
            return
        if is_traceable_wrapper_subclass(tensor):  # a shard of a distributed tensor, a quantized one
            for name in tensor.__tensor_flatten__()[0]:
                self._note(numbers, getattr(tensor, name))
            return
        number = self.storages.number_of(tensor)
        if number is not None:
            numbers.add(number)


def _named_inputs() -> dict[str, Any]:
    """Return what the module that is being called was given by name: torch's global hooks are not told."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(3):
        if frame is not None and frame.f_code.co_name in {"inner", "_call_impl"}:
            named = frame.f_locals.get("kwargs")
            return dict(named) if isinstance(named, dict) else {}
        frame = frame.f_back if frame is not None else None
    return {}


def _all_modules() -> list[Any]:
    """Return all modules of the process: a frozen teacher and an average of the weights are called by no step."""
    return [
        each
        for each in gc.get_objects()
        if issubclass(type(each), torch.nn.Module) and hasattr(each, "_parameters")
    ]


def _parameters(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]
