"""A default of the program, which decides what some of its calls are given."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from hotloop.source.settings_file import Setting


@dataclass(frozen=True)
class Option:
    """A default in the source, or a setting in a configuration file.

    Attributes:
        path: of the file.
        node: the value as it is written; of an `add_argument` without a default, the call; of a setting, the setting.
        flags: of the command line: `--workers` and `-j`, `data.workers` under Hydra; empty: it has none.
    """

    path: str
    node: cst.BaseExpression | Setting
    flags: tuple[str, ...] = ()
