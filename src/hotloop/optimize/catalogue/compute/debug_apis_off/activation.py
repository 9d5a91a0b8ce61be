"""The activation of debug_apis_off.

Behaviour is patched, not names: programs hold `detect_anomaly` or `profile` from an import of their own, test
them with isinstance and enter them as contexts. So the classes stay, and what their methods call is replaced.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hotloop.probe.activation.activation import Activation


class DebugCalls(Activation):
    """Intercepts the debugging calls and counts those that would have switched something on."""

    def __init__(self) -> None:
        self.intercepted: Counter[str] = Counter()

    def on_torch(self) -> None:
        """Switch off what is on and intercept what would switch it on."""
        self._anomaly()
        self._profilers()
        self._gradcheck()

    def _anomaly(self) -> None:
        """Both classes of `anomaly_mode` look `torch.set_anomaly_enabled` up when they are used."""
        import torch

        original = torch.set_anomaly_enabled
        if torch.is_anomaly_enabled():
            self.intercepted["anomaly detection"] += 1
            original(False)

        def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
            if enabled:
                self.intercepted["anomaly detection"] += 1
            original(False, check_nan)

        torch.set_anomaly_enabled = set_anomaly_enabled

    def _profilers(self) -> None:
        from torch.autograd import profiler

        for name in ("emit_nvtx", "emit_itt"):
            cls = getattr(profiler, name)
            cls.__enter__ = self._counted(name, lambda context: context)
            cls.__exit__ = _go_on
        profiler.profile.__enter__ = self._counted("profile", _empty_profile)
        profiler.profile.__exit__ = _leave(profiler.profile.__exit__)

    def _counted(self, name: str, then: Any) -> Any:
        def enter(context: Any) -> Any:
            if not context.enabled:
                return None
            self.intercepted[name] += 1
            return then(context)

        return enter

    def _gradcheck(self) -> None:
        """A function obtained earlier has to be changed in its own code; a cell keeps the count."""
        import importlib

        module = importlib.import_module("torch.autograd.gradcheck")
        for name in ("gradcheck", "gradgradcheck"):
            function = getattr(module, name)
            module.__dict__["_hotloop_count"] = self._count
            function.__code__ = _answer_true.__code__.replace(co_name=name)
            function.__kwdefaults__ = {"_name": name}
            function.__defaults__ = None

    def _count(self, name: str) -> None:
        self.intercepted[name] += 1

    def effect(self) -> tuple[bool, str]:
        """Return whether a call was intercepted, and which how often."""
        if not self.intercepted:
            return False, "no debugging call was made"
        calls = ", ".join(
            f"{name} ({count} {'call' if count == 1 else 'calls'})"
            for name, count in sorted(self.intercepted.items())
        )
        return True, f"kept off: {calls}"


def _answer_true(*args: Any, _name: str = "", **kwargs: Any) -> bool:  # noqa: ARG001 - stands in for gradcheck
    _hotloop_count(_name)  # type: ignore[name-defined] # noqa: F821 - a global of torch.autograd.gradcheck
    return True


def _empty_profile(profile: Any) -> Any:
    """Enter a profile without starting it: its tables can be asked for, and are empty."""
    profile.entered = True
    profile.kineto_results = _NoResults()
    return profile


def _go_on(*_: Any) -> None:
    """Leave a context in which nothing was begun."""


def _leave(original: Any) -> Any:
    """Return an `__exit__` for profiles that were not started; torch.profiler's own are."""

    def leave(profile: Any, *error: Any) -> Any:
        if profile.enabled and isinstance(profile.kineto_results, _NoResults):
            return False
        return original(profile, *error)

    return leave


class _NoResults:
    """What an empty profile saves; false, so that torch finds nothing in it to read."""

    def __bool__(self) -> bool:
        return False

    def save(self, path: str) -> None:
        """Write a trace without events."""
        Path(path).write_text('{"traceEvents": []}')
