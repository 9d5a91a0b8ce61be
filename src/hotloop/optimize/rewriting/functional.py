"""By what name a file knows torch.nn.functional."""

from __future__ import annotations

from hotloop.source.draft import Editor
from hotloop.source.imports import aliases, module_name


def functional(source: Editor, path: str) -> str:
    """Return the name by which a file knows torch.nn.functional, importing torch where it does not."""
    known = {full: name for name, full in aliases(source.file(path)).items()}
    if "torch.nn.functional" in known:
        return known["torch.nn.functional"]
    if "torch.nn" in known:
        return f"{known['torch.nn']}.functional"
    return f"{module_name(source, path, 'torch')}.nn.functional"
