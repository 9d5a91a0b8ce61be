"""Configurations that do not run: they are computed from the account of one that did."""

from __future__ import annotations

import msgspec

from hotloop.memory.configurations import AS_IT_IS

ZERO = "ZeRO's formula on the account of the program (arXiv 1910.02054, section 3)"
STATES = ("optimizer_state",)
GRADIENTS = ("gradients", *STATES)
EVERYTHING = ("parameters", *GRADIENTS)


class ComputedConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration, as the virtual GPU computes it.

    Attributes:
        name: for the table.
        of: name of the configuration whose account it is computed from.
        over: devices that share what is sharded; each has a batch of the program's size.
        sharded: classes of storages that are divided by `over`.
        states: of the optimizer: as they are (None), 8-bit or offloaded.
        buckets: gradients exist once more, in DDP's buckets.
        gathered: parameters are gathered block by block (FSDP2, ZeRO-3).
        formula: where the numbers come from, for the reader.
    """

    name: str
    of: str = AS_IT_IS
    over: int = 1
    sharded: tuple[str, ...] = ()
    states: str | None = None
    buckets: bool = False
    gathered: bool = False
    formula: str = ZERO


def computed_configurations(half: str) -> list[ComputedConfiguration]:
    """Return what is computed.

    Args:
        half: name of the configuration with autocast and checkpointing, from which the smallest ones are computed.
    """
    eight_bit = (
        "bitsandbytes' 8-bit states: a byte an element, 4 bytes a block of 256, no temporaries in the step"
    )
    offloaded = "states and the step on the host (ZeRO-Offload, arXiv 2101.06840); transfers take time"
    return [
        ComputedConfiguration(name="8-bit optimizer", states="8-bit", formula=eight_bit),
        ComputedConfiguration(name="optimizer offloaded", states="offloaded", formula=offloaded),
        ComputedConfiguration(name=f"{half} + 8-bit optimizer", of=half, states="8-bit", formula=eight_bit),
        ComputedConfiguration(
            name="DDP",
            over=2,
            buckets=True,
            formula="gradients once more in buckets of 25 MiB (torch's default)",
        ),
        ComputedConfiguration(name="ZeRO-1 over 8", over=8, sharded=STATES, buckets=True),
        ComputedConfiguration(name="ZeRO-2 over 8", over=8, sharded=GRADIENTS),
        *(
            ComputedConfiguration(
                name=f"FSDP2 (ZeRO-3) over {over}", over=over, sharded=EVERYTHING, gathered=True
            )
            for over in (2, 4, 8)
        ),
        ComputedConfiguration(
            name=f"{half} + FSDP2 over 8", of=half, over=8, sharded=EVERYTHING, gathered=True
        ),
    ]
