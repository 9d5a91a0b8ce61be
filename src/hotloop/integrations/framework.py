"""What each framework says of itself: the class whose keywords are its knobs, and which of them a step turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.model.sites import Sites
from hotloop.source.settings_file import SettingsFile

Keywords = Callable[[Mapping[str, Any]], dict[str, str]]
"""The parameters of a step to keywords, each value as Python."""
Check = Callable[[Mapping[str, Any], Sites], bool]
"""Whether the framework makes what a step acts on, by the observed run; raises CannotEdit where its knob would do
something else."""


@dataclass(frozen=True)
class Framework:
    """One framework.

    Attributes:
        name: as people know it.
        classes: qualified names of the class that takes the knobs, as programs import it and as it calls itself.
        knobs: name of an optimization to the keywords that do the same.
        parsers: functions that make such an object from the command line; the keywords are then its options.
        checks: name of an optimization to what has to be seen before its knob is turned; absent: nothing.
        on_cpu: name of an optimization to the keyword that says that there is no GPU; without it the framework refuses
            the knob on a CPU.
        launcher_file: by which top-level settings the file is known that its launcher takes the same keywords from; a
            keyword of the call wins over it. None: it has no such file.
    """

    name: str
    classes: frozenset[str]
    knobs: Mapping[str, Keywords]
    parsers: frozenset[str] = field(default_factory=frozenset)
    checks: Mapping[str, Check] = field(default_factory=dict)
    on_cpu: Mapping[str, str] = field(default_factory=dict)
    launcher_file: frozenset[str] | None = None

    def turns(self, name: str, params: Mapping[str, Any], sites: Sites) -> bool:
        """Return whether its knob does what the step does in the observed program.

        Raises:
            CannotEdit: the framework makes something that the knob would replace.
        """
        return name not in self.checks or self.checks[name](params, sites)

    def launches_by(self, file: SettingsFile) -> bool:
        """Return whether its launcher reads this file."""
        keys = {setting.name for setting in file.settings if len(setting.keys) == 1}
        return self.launcher_file is not None and self.launcher_file <= keys
