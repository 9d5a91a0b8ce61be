"""Places in the user's source that no hook point sees by itself; looked for in the first steps, then all is as it was.

What is replaced here is looked up by torch at every call, so that nobody can keep a reference to ours; classes go on
showing their own methods.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from hotloop.probe.frameless import Around, Before, own_method
from hotloop.probe.probe import Probe
from hotloop.probe.record.sites import walk

STEPS = 8
"""Steps after which torch is left as it was; accumulation over more micro-batches is seen at its first step."""


def install(probe: Probe) -> None:
    """Look, if somebody wants to know."""
    if not probe.sites.wanted:
        return
    import torch
    from torch.nn.utils import clip_grad

    _watch_models(probe)
    _watch_zero_grad(probe, torch.optim.Optimizer)
    _replace(probe, clip_grad, "_group_tensors_by_device_and_dtype", "clip")
    _replace(probe, torch, "set_anomaly_enabled", "debug", only=lambda enabled, *_: enabled)
    for name in ("to", "cuda"):
        _replace(probe, torch.Tensor, name, "transfer", only=_copies)
    probe.boundary.on_look.append(lambda steps: probe.sites.close() if steps >= STEPS else None)


def _replace(probe: Probe, owner: Any, name: str, kind: str, *, only: Any = None) -> None:
    original, sites = getattr(owner, name, None), probe.sites
    if original is None:  # of another version of torch
        return
    is_class = isinstance(owner, type)
    inner = own_method(owner, name) if is_class else original

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if sites.open(kind) and not probe.asleep:
            with probe.survive(f"sites.{kind}"):
                if only is None or only(*args, **kwargs):
                    sites.note(kind, getattr(original, "__qualname__", name))
        return inner(*args, **kwargs)

    _put(probe, owner, name, Around(original, call) if is_class else call)


def _watch_zero_grad(probe: Probe, optimizers: Any) -> None:
    original, sites = optimizers.zero_grad, probe.sites

    def called(_: Any) -> None:
        if sites.open("zero_grad") and not probe.asleep:
            with probe.survive("sites.zero_grad"):
                sites.note("zero_grad", original.__qualname__)

    _put(probe, optimizers, "zero_grad", Before(original, called))


def _put(probe: Probe, owner: Any, name: str, changed: Any) -> None:
    """Replace an attribute until the sites are closed, unless somebody puts theirs over ours."""
    before = vars(owner).get(name, _INHERITED)

    def restore() -> None:
        if vars(owner).get(name) is changed:
            if before is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    setattr(owner, name, changed)
    probe.sites.on_close.append(restore)


_INHERITED = object()


def _copies(tensor: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether a `to` or `cuda` copies a batch to a device; what is a parameter is not a batch."""
    import torch

    target = args[0] if args else kwargs.get("device")
    return (
        tensor.device.type == "cpu"
        and not tensor.requires_grad
        and not isinstance(target, torch.dtype)
        and not (target is None and ("dtype" in kwargs or "memory_format" in kwargs))
    )


def _watch_models(probe: Probe) -> None:
    """Keep where each module was constructed until one of them turns out to be a root."""
    from torch.nn.modules import module as modules

    known = probe.sites.made

    def registered(module: Any, name: str, part: Any) -> None:  # noqa: ARG001 - torch's signature
        with probe.survive("sites.model"):
            if module not in known and probe.sites.wanted and not probe.asleep:
                known[module] = walk(sys._getframe(2), module)

    handles = [
        modules.register_module_module_registration_hook(registered),
        modules.register_module_parameter_registration_hook(registered),
    ]

    probe.sites.on_close.extend(handle.remove for handle in handles)
