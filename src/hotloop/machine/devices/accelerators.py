"""Which accelerators the machine has, asked of the drivers: torch is never imported."""

import platform
from pathlib import Path

from hotloop.machine.devices.nvml import open_nvml
from hotloop.model.machine import Accelerator


def accelerators(root: Path = Path("/")) -> tuple[Accelerator, ...]:
    """Return every accelerator that a driver reports, whichever ones CUDA_VISIBLE_DEVICES shows."""
    return (*_nvidia(root), *_amd(root), *_apple())


def _nvidia(root: Path) -> list[Accelerator]:
    """NVML knows the memory; /proc, which needs no library, only the name."""
    if not (root / "proc/driver/nvidia").exists() and not (root / "dev/nvidiactl").exists():
        return []
    with open_nvml() as nvml:
        if nvml is not None:
            return [Accelerator(device.name, device.memory_bytes) for device in nvml.devices()]
    files = sorted((root / "proc/driver/nvidia/gpus").glob("*/information"))
    return [Accelerator(_field(file.read_text(), "Model")) for file in files]


def _amd(root: Path) -> list[Accelerator]:
    """The amdgpu driver publishes memory in sysfs; integrated graphics below 1 GiB are left out."""
    found = []
    for file in sorted((root / "sys/class/drm").glob("card*/device/mem_info_vram_total")):
        memory_bytes = int(file.read_text())
        if memory_bytes >= 1 << 30:
            found.append(Accelerator(_amd_name(file.parent), memory_bytes))
    return found


def _amd_name(device: Path) -> str:
    for name in ("product_name", "device"):
        try:
            text = (device / name).read_text().strip()
        except OSError:
            continue
        if text:
            return text if name == "product_name" else f"AMD GPU {text}"
    return "AMD GPU"


def _apple() -> list[Accelerator]:
    """Apple's GPU shares the machine's memory."""
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return [Accelerator("Apple GPU")]
    return []


def _field(text: str, name: str) -> str:
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "NVIDIA GPU"
