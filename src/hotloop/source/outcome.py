"""What comes of a rewrite, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotloop.model.option_value import OptionValue
from hotloop.model.safety import Safety


@dataclass(frozen=True)
class Edited:
    """The draft was changed, or the command line has to be.

    Attributes:
        notes: what was done, one line for each place: `train.py:12: num_workers=2`.
        safety: of all edits together.
        environment: variables that the program has to be started with; no source can set them in time.
        options: of the program's own command line, with the values that they have to have.
        prefix: words that have to stand before the command: `("taskset", "-c", "0-3")`.
        launched: the options are in no source that was edited: they have to be given.
    """

    notes: tuple[str, ...] = ()
    safety: Safety = Safety.SAFE
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[OptionValue, ...] = ()
    prefix: tuple[str, ...] = ()
    launched: bool = False


@dataclass(frozen=True)
class AlreadySo:
    """The source does it already.

    Attributes:
        where: what was seen: `train.py:12 has num_workers=2`.
        options: whose default an earlier patch changed.
    """

    where: str
    options: tuple[OptionValue, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The source was left alone.

    Attributes:
        reason: why, as a clause: "the loader is made in a library (timm/data/loader.py:31)".
        code: what to write by hand, without hotloop.
    """

    reason: str
    code: str = ""


Rewrite = Edited | AlreadySo | Refused


class CannotEdit(Exception):  # noqa: N818 - an answer, not an error
    """Raised by what edits, with the reason why it does not; the rewrite that asked for it becomes `Refused`."""
