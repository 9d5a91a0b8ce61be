"""Families of accelerators, and the settings a program on one of them should start from.

Loader settings are those of the Feilian-3D performance guide, section 8.4
(greensh16.github.io/docs/feilian-3d/performance): it names MI250X and A100 as fast devices and V100 and T4 as
slower ones; newer devices are put with the fast ones. They are advice for a start, `hotloop tune` measures.
"""

import re

from hotloop.model.machine import GpuClass, LoaderSettings

_FAST = LoaderSettings(
    min_workers=4, max_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=3
)
_SLOWER = LoaderSettings(
    min_workers=2, max_workers=4, pin_memory=True, persistent_workers=False, prefetch_factor=2
)
CPU_LOADER = LoaderSettings(
    min_workers=0, max_workers=0, pin_memory=False, persistent_workers=False, prefetch_factor=None
)
"""The guide's settings for inference on the CPU."""

_GUIDE = "Feilian-3D performance guide, 8.4"
_AS_FAST = f"{_GUIDE} (for A100; newer than the guide)"


def _known(name: str, half: str, tf32: bool, loader: LoaderSettings, source: str) -> GpuClass:
    return GpuClass(name=name, half_precision=half, tf32=tf32, loader=loader, source=source)


_CLASSES = (
    _known("V100", "fp16", False, _SLOWER, _GUIDE),
    _known("T4", "fp16", False, _SLOWER, _GUIDE),
    _known("A100", "bf16", True, _FAST, _GUIDE),
    _known("MI250X", "fp16", False, _FAST, f"{_GUIDE}; bf16 is not widely fast there, says 8.2"),
    _known("MI250", "fp16", False, _FAST, f"{_GUIDE} (for MI250X)"),
    _known("MI300", "bf16", False, _FAST, _AS_FAST),
    _known("MI325", "bf16", False, _FAST, _AS_FAST),
    _known("MI355", "bf16", False, _FAST, _AS_FAST),
    _known("H100", "bf16", True, _FAST, _AS_FAST),
    _known("H200", "bf16", True, _FAST, _AS_FAST),
    _known("B200", "bf16", True, _FAST, _AS_FAST),
)
"""16-bit formats and TF32 by the vendors' data sheets: tensor cores of Volta and Turing know fp16 only."""


def gpu_class(device_name: str) -> GpuClass | None:
    """Return the family of a device by its driver's name, None for one we know nothing of.

    The family's name has to be a word of its own, one letter more allowed: `A100-SXM4-40GB` is an A100,
    `MI300X` is an MI300, `RTX A1000` is not an A100.
    """
    words = [word.upper() for word in re.split(r"[^A-Za-z0-9]+", device_name)]
    for known in _CLASSES:
        pattern = re.compile(rf"{known.name}[A-Z]?\Z")
        if any(pattern.match(word) for word in words):
            return known
    return None
