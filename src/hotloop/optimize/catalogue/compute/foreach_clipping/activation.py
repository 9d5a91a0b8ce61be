"""The activation of foreach_clipping."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.probe.activation.knob import Knob

_INNER = ("_get_total_norm", "_clip_grads_with_norm_")


class ClippingTogether(Knob):
    """Lets torch choose how it clips, where the program has it go one by one.

    Args:
        at_once: from the start; else when it is switched.
    """

    def __init__(self, *, at_once: bool) -> None:
        self._is_on = at_once
        self._num_changed = 0

    def on_torch(self) -> None:
        """Stand where `foreach` is read: for the norm in what torch calls by itself, else in the function."""
        from torch.nn import utils
        from torch.nn.utils import clip_grad

        for name in _INNER:
            setattr(clip_grad, name, self._not_one_by_one(getattr(clip_grad, name)))
        clip_grad.clip_grad_value_ = self._not_one_by_one(clip_grad.clip_grad_value_)
        utils.clip_grad_value_ = clip_grad.clip_grad_value_

    def _not_one_by_one(self, original: Any) -> Any:
        """`foreach` is the last parameter of all of them."""

        @functools.wraps(original)
        def changed(*args: Any, **keywords: Any) -> Any:
            if self._is_on and keywords.get("foreach") is False:
                self._num_changed += 1
                keywords["foreach"] = None
            elif self._is_on and args and args[-1] is False:
                self._num_changed += 1
                args = (*args[:-1], None)
            return original(*args, **keywords)

        return changed

    def switch(self, on: bool) -> None:
        """Clip together, or as torch and the program have it."""
        self._is_on = on

    def effect(self) -> tuple[bool, str]:
        """Return whether something was clipped together that would not have been."""
        if not self._num_changed:
            return False, "nothing was clipped that torch would not have clipped together"
        return True, f"gradients were taken together {self._num_changed}x"
