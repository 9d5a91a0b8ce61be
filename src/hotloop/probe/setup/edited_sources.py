"""The user's files as they run: read as ever, changed by the optimizations that edit source, compiled by their names.

No file is written, neither the source nor its bytecode: what is compiled here lives in this process alone. A file that
no optimization changes is left to Python.
"""

from __future__ import annotations

import ast
import builtins
import os
import traceback
from collections.abc import Mapping, Sequence
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.order import made_to_order
from hotloop.probe.record.call_site import is_users_file
from hotloop.probe.setup.edited_script import BEGINS, as_started, begin_script, edit_script

MAX_BYTES = 1 << 20
"""What is larger was not written by hand."""


class EditedSources:
    """Gives Python other code for the files that an optimization changes.

    Args:
        orders: all that the probe is to switch on.

    Attributes:
        activations: those that edit source, by their number among the orders.
        notes: what failed; the program then runs as it is.
    """

    def __init__(self, orders: Sequence[Mapping[str, Any]]) -> None:
        self.activations: dict[int, Activation] = {}
        self.notes: list[dict[str, str]] = []
        for number, order in enumerate(orders):
            if order.get("edits_source"):
                self._make(number, order)

    def _make(self, number: int, order: Mapping[str, Any]) -> None:
        try:
            activation = made_to_order(order)
        except Exception:  # as any activation that fails: it is left out, the program goes on
            self._note(f"activation:{order['name']}")
        else:
            if activation is not None:
                self.activations[number] = activation

    def install(self) -> None:
        """Stand where modules get their code, and where Python looks at the script that it is to run."""
        original = SourceFileLoader.get_code

        def get_code(loader: Any, fullname: str) -> Any:
            code = self.code_of(loader.path)
            return original(loader, fullname) if code is None else code

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        edit_script(lambda path: self.code_of(path, is_script=True))

    def code_of(self, path: str, *, is_script: bool = False) -> CodeType | None:
        """Return the code to run for a file; None: Python's own way is right."""
        if not self.activations or not path.endswith(".py") or not is_users_file(path):
            return None
        try:
            return self._edited(path, is_script=is_script)
        except SyntaxError:
            return None  # Python says so better
        except Exception:  # the probe fails open
            self._note(f"source:{path}")
            return None

    def _edited(self, path: str, *, is_script: bool) -> CodeType | None:
        if os.path.getsize(path) > MAX_BYTES:
            return None
        with open(path, "rb") as file:
            raw = file.read()
        tree = ast.parse(raw, path)
        names: dict[str, Any] = {}
        changed = [each.on_source(path, tree, names) for each in self.activations.values()]
        if not any(changed):
            return None
        if is_script:
            begin_script(tree)
            names[BEGINS] = as_started
        # In the builtins: new code finds it whichever module it stands in, and none of them shows it.
        vars(builtins).update(names)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def _note(self, where: str) -> None:
        self.notes.append({"where": where, "error": traceback.format_exc(limit=-4)})
