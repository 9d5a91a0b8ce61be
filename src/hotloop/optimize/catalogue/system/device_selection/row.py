"""device_selection: the GPUs that are best connected, and free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.machine.devices.links import Wired, Wiring, wiring
from hotloop.machine.devices.nvml import open_nvml
from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.system.device_selection.activation import VARIABLE, VisibleDevices
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import only, required
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

MAX_SETS = 100_000
"""16 devices have 12,870 sets of 8."""


class DeviceSelection(Optimization):
    """Use the GPUs that are best connected to each other and to the host.

    What it does: `CUDA_VISIBLE_DEVICES` names the devices, as many as the program uses now: those with the shortest
    longest way between any two (NVLink before a PCIe switch, that before the other socket), with the fewest foreign
    processes, and the widest link to the host. `CUDA_DEVICE_ORDER=PCI_BUS_ID` makes the numbers those of nvidia-smi.

    Why it is faster: gradients travel over the slowest link of the set, batches over the link to the host, and a device
    that others use is shared with them.

    When it does not help: one GPU, or a program that uses all of them; links that are all alike; a machine where
    somebody else gives out the devices (a scheduler sets the variable by itself: it is then left alone).

    Effect on numerics: none on devices of the same model; others are never chosen.

    Example: `CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc-per-node 2 train.py`

    References: NVIDIA, `nvidia-smi topo -m`, NVML reference; CUDA programming guide, environment variables.
    """

    name: ClassVar[str] = "device_selection"
    family: ClassVar[str] = "system"
    numerics: ClassVar[Numerics] = Numerics.EXACT

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the best set, where it differs from the program's."""
        program = observation.program
        if program.device != "cuda":
            raise DoesNotApply(f"the model is on {program.device}")
        if VARIABLE in program.environment:
            raise DoesNotApply(f"the program is given its devices ({VARIABLE})")
        with open_nvml() as nvml:
            if nvml is None:
                raise DoesNotApply(
                    "NVIDIA's management library tells nothing here (nvidia-ml-py, the driver)"
                )
            wired = wiring(nvml)
        used = [use.uuid.removeprefix("GPU-").lower() for use in observation.memory.devices if use.uuid]
        best = best_set(wired, used)
        return [self.candidate(params={"devices": ",".join(map(str, best))}, prior=1.1)]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the list."""
        only(params, "devices")
        required(params, "devices")
        listed = params["devices"]
        if not isinstance(listed, str) or not all(part.isdigit() for part in listed.split(",")):
            raise ValueError(f"devices is {listed!r}; allowed: numbers of GPUs with commas between: 2,3")

    def environment(self, params: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what CUDA reads when it starts."""
        return {VARIABLE: params["devices"], "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what looks which devices are there; it changes nothing."""
        return VisibleDevices(params["devices"])

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Return the launch line."""
        from hotloop.optimize.rewriting.outcomes import launched_with

        return launched_with(self.environment(params))


def best_set(wired: Wiring, used: Sequence[str]) -> tuple[int, ...]:
    """Return the best set of as many devices as are used, of the same model.

    Raises:
        DoesNotApply: the program's own set is as good as any.
    """
    now = [device for device in wired.devices if device.uuid in used]
    if len(now) != len(used) or not now:
        raise DoesNotApply("the driver does not know the devices that the program uses")
    alike = [device for device in wired.devices if _is_like(device, now[0])]
    if len(alike) <= len(now):
        raise DoesNotApply(f"the program uses every {now[0].name} of this machine")

    def worth(devices: Sequence[Wired]) -> tuple[int, int, int]:
        foreign = sum(device.num_foreign or 0 for device in devices)
        lanes = min(device.lanes or 0 for device in devices)
        return foreign, wired.spread([device.index for device in devices]), -lanes

    best = min(islice(combinations(alike, len(now)), MAX_SETS), key=worth)
    if worth(best) >= worth(now):
        raise DoesNotApply(
            "no other devices are freer, or better connected, than those that the program uses"
        )
    return tuple(device.index for device in best)


def _is_like(device: Wired, other: Wired) -> bool:
    return (device.name, device.memory_bytes) == (other.name, other.memory_bytes)
