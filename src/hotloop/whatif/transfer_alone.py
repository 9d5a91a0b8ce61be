"""The copy of one batch to the device, alone."""

from __future__ import annotations

from statistics import median
from time import monotonic
from typing import Any

from hotloop.optimize.loaders.fetches import Fetches
from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.probe.activation.knob import Bench
from hotloop.whatif.device_wait import synchronize

NUM_COPIES = 10


class TransferAlone(Bench):
    """Copies the last batch to the device that the model is on."""

    def __init__(self) -> None:
        self._fetches = Fetches()
        self._device: Any = None

    def activation(self, params: dict[str, Any]) -> TransferAlone:  # noqa: ARG002 - what the probe calls
        """Return what acts."""
        return self

    def on_torch(self) -> None:
        """See the batches."""
        self._fetches = Fetches.of_process()

    def on_root(self, module: Any) -> None:
        """See the device."""
        self._device = next((parameter.device for parameter in module.parameters()), None)

    def watch(self, steps: int) -> None:
        """See which loaders feed the steps."""
        self._fetches.watch(steps)

    def run(self) -> dict[str, Any]:
        """Return the median time of a copy of one batch, in seconds."""
        loader = self._fetches.step_loader()
        if loader is None or self._device is None or self._device.type == "cpu":
            return {"missing": "no batch is copied from a DataLoader to a device"}
        batch = next(batch for known, batch in self._fetches.last.values() if known is loader)
        if all(tensor.device == self._device for tensor in tensors_in(batch)):
            return {"missing": "the batches are on the device already"}
        times = []
        for _ in range(NUM_COPIES):
            synchronize(self._device)
            began = monotonic()
            map_tensors(batch, lambda tensor: tensor.to(self._device))
            synchronize(self._device)
            times.append(monotonic() - began)
        return {"transfer_s": median(times)}
