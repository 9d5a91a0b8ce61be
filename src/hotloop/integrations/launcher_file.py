"""The setting of a launcher's own file that a framework's object takes where it is not told otherwise."""

from __future__ import annotations

import libcst as cst

from hotloop.integrations.framework import Framework
from hotloop.source.calls import argument
from hotloop.source.draft import Editor
from hotloop.source.option import Option
from hotloop.source.outcome import CannotEdit

_DEEPSPEED = "deepspeed_config_file"


def launcher_setting(source: Editor, framework: Framework, call: cst.Call, keyword: str) -> Option | None:
    """Return the setting that decides, with the launcher's own option for it; None: the call does.

    Args:
        source: the user's files, with the configuration files that the command line names.
        framework: with the launcher.
        call: that sets the framework up.
        keyword: of the call.

    Raises:
        CannotEdit: the launcher's file leaves it to a file of DeepSpeed's.
    """
    if argument(call, keyword) is not None or any(arg.star == "**" for arg in call.args):
        return None
    files = [file for file in source.draft.settings.values() if framework.launches_by(file)]
    for file in files:
        if any(setting.name == _DEEPSPEED for setting in file.settings):
            raise CannotEdit(f"{file.path} leaves {keyword} to DeepSpeed's own file")
    found = [setting for file in files for setting in file.settings if setting.keys == (keyword,)]
    if len(found) != 1:
        return None
    return Option(found[0].path, found[0], (f"--{keyword}",))
