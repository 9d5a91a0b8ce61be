# ruff: noqa: ARG005 - what stands in for a function has its signature
"""Changes that leave the training as it was: reordered sums, reduced precision, other memory, other random draws."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from benchmarks.parity.warm import Change
from hotloop.model.optimization import Candidate, Numerics

EXACT, TOLERANCE = Numerics.EXACT, Numerics.TOLERANCE
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -3, -4, -8


class Harmless(Change, frozen=True, kw_only=True):
    """A change, and how strictly it is held to the original."""

    numerics: Numerics
    touches_numbers: bool = True


def _catalogue(name: str, numerics: Numerics, **params: object) -> Candidate:
    return Candidate(name=name, params=params, numerics=numerics)


def _mallopt(*settings: tuple[int, int]) -> Callable[[], None]:
    def set_all() -> None:
        for option, value in settings:
            ctypes.CDLL(None).mallopt(option, value)

    return set_all


def _shifted_memory() -> None:
    """Other addresses for everything that is allocated from here on."""
    _kept.extend([torch.empty(1009 + 16 * number) for number in range(400)][::2])


_kept: list[torch.Tensor] = []


def _no_mkldnn() -> None:
    torch.backends.mkldnn.enabled = False


def _set_to_zero() -> None:
    original = torch.optim.Optimizer.zero_grad
    torch.optim.Optimizer.zero_grad = lambda self, set_to_none=True: original(self, set_to_none=False)  # type: ignore[method-assign, assignment, misc]


def _bf16_products() -> None:
    torch.set_float32_matmul_precision("medium")


def _two_threads() -> None:
    torch.set_num_threads(2)


def _flush_denormal() -> None:
    torch.set_flush_denormal(True)


def _plain_attention() -> None:
    torch.backends.cuda.enable_flash_sdp(False)


def _other_draws() -> None:
    """What augmentation in workers or a fused dropout does: the same distribution, other values."""
    original = torch.Tensor.backward
    done = False

    def backward(self: torch.Tensor, *args: object, **kwargs: object) -> None:
        nonlocal done
        original(self, *args, **kwargs)  # type: ignore[arg-type]
        if not done:
            done = True
            torch.rand(977)

    torch.Tensor.backward = backward  # type: ignore[method-assign, assignment]


def _rounding(size: float, seed: int) -> Callable[[], None]:
    """Gradients rounded otherwise in every step, as reordered sums do."""

    def install() -> None:
        generator = torch.Generator().manual_seed(seed)

        def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None and not parameter.grad.is_sparse:
                        noise = torch.randn(parameter.shape, generator=generator).to(parameter.grad)
                        parameter.grad.mul_(1 + size * noise)

        register_optimizer_step_pre_hook(before)  # type: ignore[arg-type]

    return install


def _all(*parts: Callable[[], None]) -> Callable[[], None]:
    def every() -> None:
        for part in parts:
            part()

    return every


_AUTOCAST = _catalogue("autocast_bf16", TOLERANCE)
_LAYOUT = _catalogue("channels_last", EXACT)
_FUSED = _catalogue("fused_optimizer", EXACT, implementation="fused")
_FOREACH = _catalogue("fused_optimizer", EXACT, implementation="foreach")
_WORKER = _catalogue("loader_workers", TOLERANCE, num_workers=1)
_UNMAPPED = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, 2**30), (_M_TOP_PAD, 2**26))


def _untouched(before: Callable[[], None]) -> Harmless:
    return Harmless(numerics=EXACT, touches_numbers=False, before=before)


HARMLESS: dict[str, Harmless] = {
    "no page faults": _untouched(_mallopt(*_UNMAPPED)),
    "small memory maps": _untouched(_mallopt((_M_MMAP_THRESHOLD, 4096))),
    "one arena": _untouched(_mallopt((_M_ARENA_MAX, 1))),
    "other addresses": _untouched(_shifted_memory),
    "other addresses, no page faults": _untouched(_all(_mallopt(*_UNMAPPED), _shifted_memory)),
    "gradients set to zero": Harmless(numerics=EXACT, before=_set_to_zero),
    "no oneDNN": Harmless(numerics=EXACT, before=_no_mkldnn),
    "no oneDNN, other addresses": Harmless(numerics=EXACT, before=_all(_no_mkldnn, _shifted_memory)),
    "plain attention": Harmless(numerics=EXACT, before=_plain_attention),
    "deterministic": Harmless(
        numerics=EXACT, before=lambda: torch.use_deterministic_algorithms(True, warn_only=True)
    ),
    "channels_last": Harmless(numerics=EXACT, plan=(_LAYOUT,)),
    "fused": Harmless(numerics=EXACT, plan=(_FUSED,)),
    "foreach": Harmless(numerics=EXACT, plan=(_FOREACH,)),
    "channels_last, fused": Harmless(numerics=EXACT, plan=(_LAYOUT, _FUSED)),
    "channels_last, no oneDNN": Harmless(numerics=EXACT, plan=(_LAYOUT,), before=_no_mkldnn),
    **{
        f"rounding 2^-{bits}, {seed}": Harmless(numerics=EXACT, before=_rounding(2.0**-bits, seed))
        for bits in (24, 22)
        for seed in (1, 2, 3)
    },
    "garbage collection off": _untouched(gc.disable),
    "two threads": Harmless(numerics=EXACT, before=_two_threads),
    "two threads, channels_last": Harmless(numerics=EXACT, plan=(_LAYOUT,), before=_two_threads),
    "two threads, fused": Harmless(numerics=EXACT, plan=(_FUSED,), before=_two_threads),
    "foreach, other addresses": Harmless(numerics=EXACT, plan=(_FOREACH,), before=_shifted_memory),
    "tiny values flushed to zero": Harmless(numerics=EXACT, before=_flush_denormal),
    "autocast": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST,)),
    "autocast, channels_last": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST, _LAYOUT)),
    "autocast, fused": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST, _FUSED)),
    "autocast, no page faults": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST,), before=_mallopt(*_UNMAPPED)),
    "bf16 products": Harmless(numerics=TOLERANCE, before=_bf16_products),
    "bf16 products, other addresses": Harmless(
        numerics=TOLERANCE, before=_all(_bf16_products, _shifted_memory)
    ),
    "other draws": Harmless(numerics=TOLERANCE, before=_other_draws),
    "other draws, autocast": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST,), before=_other_draws),
    "a worker": Harmless(numerics=TOLERANCE, plan=(_WORKER,)),
    "a worker, fused": Harmless(numerics=TOLERANCE, plan=(_WORKER, _FUSED)),
    "autocast, two threads": Harmless(numerics=TOLERANCE, plan=(_AUTOCAST,), before=_two_threads),
    "rounding 2^-9, 1": Harmless(numerics=TOLERANCE, before=_rounding(2.0**-9, 1)),
    "rounding 2^-9, 2": Harmless(numerics=TOLERANCE, before=_rounding(2.0**-9, 2)),
}
