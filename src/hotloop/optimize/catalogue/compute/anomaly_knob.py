"""debug_apis_off as a knob: anomaly detection held off for a while."""

from __future__ import annotations

from hotloop.probe.activation.knob import Knob


class AnomalyKnob(Knob):
    """Holds anomaly detection off while on; then what the program wished for meanwhile is in force."""

    def __init__(self) -> None:
        self._is_on = False
        self._wished = (False, True)
        self._held_off = 0

    def on_torch(self) -> None:
        """Put ourselves where both classes of `anomaly_mode` look."""
        import torch

        original = torch.set_anomaly_enabled

        def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
            self._wished = (enabled, check_nan)
            self._held_off += self._is_on and enabled
            original(enabled and not self._is_on, check_nan)

        torch.set_anomaly_enabled = set_anomaly_enabled

    def switch(self, on: bool) -> None:
        """Hold it off, or let it be as the program wishes."""
        import torch

        enabled, check_nan = self._wished
        self._is_on = on
        torch.set_anomaly_enabled(enabled, check_nan)

    def effect(self) -> tuple[bool, str]:
        """Return whether there was something to hold off."""
        return self._held_off > 0, f"anomaly detection was held off {self._held_off}x"
