"""The activation of autocast_fp16: gradients are scaled inside the model, and nowhere else.

A GradScaler scales the loss, so that everything between backward and step has to know of it. Here a gradient is
scaled where it enters the model (at its outputs) and unscaled where it leaves it (at its parameters, and at inputs that
want a gradient): losses, clipping, penalties, other models and the optimizers see true gradients, as without it.
"""

from __future__ import annotations

from typing import Any

from hotloop.optimize.catalogue.precision.autocast_fp16.loss_scale import LossScale
from hotloop.optimize.program.containers import map_tensors
from hotloop.optimize.reduced_precision.autocast import Autocast

MAX_SKIPPED = 0.5
"""Of the steps: beyond it the program does not train."""


class ScaledAutocast(Autocast):
    """Runs training forwards under autocast to float16 with scaled gradients."""

    def __init__(self) -> None:
        super().__init__("float16")
        self._scale = LossScale()

    def on_torch(self) -> None:
        """Watch the steps of all optimizers."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self._scale.before_step)
        register_optimizer_step_post_hook(self._scale.after_step)

    def on_forward_inputs(self, module: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Unscale where gradients leave through the inputs: into a generator, or the model before this one."""
        if self.is_wide(module):
            return args, kwargs
        return map_tensors(args, self._leaving), map_tensors(kwargs, self._leaving)

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Return the output in fp32, with gradients scaled from here on and unscaled at the parameters.

        The parameters are looked through after each forward: some may be thawed, added or replaced as training goes on.
        """
        output = super().on_forward_output(module, output)
        if self.is_wide(module):
            return output
        self._scale.watch(module.parameters())
        return map_tensors(output, self._entering)

    def effect(self) -> tuple[bool, str]:
        """Return whether autocast reduced something and most steps were taken."""
        on, evidence = super().effect()
        scale = self._scale
        said = f"{evidence}; gradient scale {scale.value:g}, {scale.num_skipped} of {scale.num_steps} steps left out"
        if not on or not scale.num_steps:
            return False, said if on else evidence
        return scale.num_skipped <= MAX_SKIPPED * scale.num_steps, said

    def _entering(self, tensor: Any) -> Any:
        # A copy: what is returned may be used inside the model too, and must be scaled on this way only.
        return _hooked(tensor, self._scale.scaled)

    def _leaving(self, tensor: Any) -> Any:
        return _hooked(tensor, self._scale.unscaled)


def _hooked(tensor: Any, change: Any) -> Any:
    if not tensor.requires_grad:
        return tensor
    copied = tensor.clone()
    copied.register_hook(change)
    return copied
