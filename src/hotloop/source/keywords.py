"""Give a parameter of a call another value: where the program has an option for it, the option's default changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from hotloop.model.option_value import OptionValue
from hotloop.model.safety import Safety
from hotloop.source.calls import argument, code, overrides, with_argument
from hotloop.source.draft import Editor
from hotloop.source.option import Option
from hotloop.source.options import current, option_in, option_of, set_option


@dataclass(frozen=True)
class Changes:
    """What was done, and how far it can be trusted.

    Attributes:
        notes: one line for each place.
        safety: of all of them together.
        options: of the command line that now have another default.
    """

    notes: tuple[str, ...] = ()
    safety: Safety = Safety.SAFE
    options: tuple[OptionValue, ...] = ()

    def __add__(self, other: Changes) -> Changes:
        """Return both."""
        safety = max(self.safety, other.safety)
        return Changes(self.notes + other.notes, safety, self.options + other.options)


def set_keyword(
    source: Editor,
    path: str,
    call: Callable[[], cst.Call],
    name: str,
    value: str,
    position: int | None = None,
) -> Changes:
    """Let a parameter of a call have a value.

    Args:
        source: the user's files.
        path: of the call's file.
        call: returns the call as it stands now.
        name: of the parameter.
        value: as Python.
        position: its place among the positional ones; None: it is taken by name alone.

    Raises:
        CannotEdit: it may be hidden in `*args`.
    """
    given = argument(call(), name, position)
    written = code(given.value) if given is not None else overrides(call(), name)
    if written == value:
        return Changes()
    option = _option(source, path, call(), given, name)
    if option is not None:
        if current(option) == value:
            return Changes()
        note = set_option(source, option, value)
        return Changes(
            (note,), options=(OptionValue(option.flags, value.strip("'\"")),) if option.flags else ()
        )
    safety = Safety.SAFE if given is None or _is_plain(given.value) else Safety.UNSAFE
    source.change(path, call(), lambda call: with_argument(call, name, value, position))
    return Changes((f"{path}:{source.file(path).line(call())}: {name}={value}",), safety)


def _option(source: Editor, path: str, call: cst.Call, given: cst.Arg | None, name: str) -> Option | None:
    """Return the option that gives a parameter its value, by its own argument or through `**cfg["loader"]`."""
    if given is not None:
        return option_of(source, path, given.value)
    holders = (arg.value for arg in call.args if arg.star == "**")
    return next((found for each in holders if (found := option_in(source, each, name)) is not None), None)


def _is_plain(value: cst.BaseExpression) -> bool:
    """Whether nothing is lost with an expression: a literal, or a count of cores; not an option that is not found."""
    return not isinstance(value, (cst.Attribute, cst.Subscript, cst.Name)) or code(value) in {
        "True",
        "False",
        "None",
    }
