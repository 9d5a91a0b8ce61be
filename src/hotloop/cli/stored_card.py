"""What the machine of a stored session can do, where it is this one."""

from __future__ import annotations

import msgspec

from hotloop.machine.card.cache import kept_card
from hotloop.machine.host.identity import differences, identity
from hotloop.model.machine import MachineCard, MachineIdentity
from hotloop.model.observation import Observation


def card_of(seen: Observation) -> MachineCard | None:
    """Return what this machine can do, for a session of this machine; None: of another one, or not measured."""
    try:
        theirs = msgspec.convert(seen.machine, MachineIdentity)
    except msgspec.ValidationError:  # of another version of hotloop
        return None
    return None if differences(theirs, identity()) else kept_card()
