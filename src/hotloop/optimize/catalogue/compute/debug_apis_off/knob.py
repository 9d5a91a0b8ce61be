"""debug_apis_off as a knob: anomaly detection held off for a while."""

from __future__ import annotations

from hotloop.probe.activation.knob import Knob


class AnomalyKnob(Knob):
    """Holds anomaly detection off while on; then what the program wished for meanwhile is in force.

    Who asks meanwhile is told the wish: a compiler switches anomaly detection for itself and puts back what it found.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._wished = (False, True)
        self._held_off = 0

    def on_torch(self) -> None:
        """Put ourselves where both classes of `anomaly_mode` look."""
        import torch

        original, enabled_now = torch.set_anomaly_enabled, torch.is_anomaly_enabled
        checks_now = torch.is_anomaly_check_nan_enabled
        self._wished = (enabled_now(), checks_now())

        def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
            self._wished = (enabled, check_nan)
            self._held_off += self._is_on and enabled
            original(enabled and not self._is_on, check_nan)

        torch.set_anomaly_enabled = set_anomaly_enabled
        torch.is_anomaly_enabled = lambda: self._wished[0]
        torch.is_anomaly_check_nan_enabled = lambda: self._wished[1]

    def switch(self, on: bool) -> None:
        """Hold it off, or let it be as the program wishes."""
        import torch

        enabled, check_nan = self._wished
        self._is_on = on
        torch.set_anomaly_enabled(enabled, check_nan)

    def effect(self) -> tuple[bool, str]:
        """Return whether there was something to hold off."""
        return self._held_off > 0, f"anomaly detection was held off {self._held_off}x"
