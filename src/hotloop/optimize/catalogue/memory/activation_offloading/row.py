"""activation_offloading: saved activations wait for the backward in host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.machine.card.cache import card_of
from hotloop.model.observation import Observation, Phase
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.memory.activation_offloading.activation import MIB, OffloadedActivations
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.parameters import integer, only, required
from hotloop.optimize.program.recomputable import require_recomputable
from hotloop.probe.activation.activation import Activation

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

SHARES = (1.0, 0.5)
"""Of what the link can carry, that is tried."""


class ActivationOffloading(Optimization):
    """Let saved activations wait for the backward in host memory.

    What it does: the first large tensors that autograd saves in a forward (they wait longest) are copied to pinned host
    memory on a stream of their own while the forward goes on, and come back on a second stream, two storages ahead of
    the backward. No more than `mib` of each forward: what the link carries beside computing, by the copy rates
    of the machine card and the time of forward and backward. Parameters, buffers and inputs stay.

    Why it is faster: it is not; it is smaller, and unlike recomputation it costs no arithmetic.

    When it does not help: on a CPU; a link that is slow for the step (the forward has to last as long as its
    activations take to leave); a host whose memory is short: pinned memory cannot be swapped. The copies share the
    link with batches and, over PCIe, with other devices. Without a machine card (`hotloop machine`) the rate of the
    link is not known, and nothing is tried. Not together with compiled code, whose graphs save by themselves, nor with
    recomputed blocks and micro-batches, which save little.

    Effect on numerics: none: the same bytes come back.

    Example: `with torch.autograd.graph.save_on_cpu(pin_memory=True): loss = criterion(model(x), y)`, which waits for
    each copy

    References: Rhu et al. 2016, vDNN; torch.autograd.graph.save_on_cpu.
    """

    name: ClassVar[str] = "activation_offloading"
    family: ClassVar[str] = "memory"
    numerics: ClassVar[Numerics] = Numerics.EXACT
    saves_memory: ClassVar[bool] = True
    conflicts: ClassVar[frozenset[str]] = frozenset(
        {"activation_checkpointing", "activation_memory_budget", "compile", "compiled_chains", "cuda_graphs"}
    )

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return what the link can carry, and half of it."""
        if observation.program.device != "cuda":
            raise DoesNotApply("the model is on no device whose memory could be spared")
        require_recomputable(observation)
        num_bytes = _carried_bytes(observation)
        account = observation.memory.account
        saved = None if account is None else account.held.by_class.get("activations")
        most = num_bytes if saved is None else min(num_bytes, saved)
        if most < MIB:
            raise DoesNotApply("the link carries less than 1 MiB in the time of a forward and a backward")
        return [
            self.candidate(params={"mib": max(1, int(share * most) // MIB)}, saved_bytes=int(share * most))
            for share in SHARES
        ]

    def validate(self, params: Mapping[str, Any]) -> None:
        """Check the limit."""
        only(params, "mib")
        required(params, "mib")
        integer(params, "mib", 1, 1 << 24)

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what moves the activations."""
        return OffloadedActivations(params["mib"] * MIB)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Show torch's own context, which moves all saved tensors and waits for each."""
        from hotloop.source.outcome import Refused

        return Refused(
            "copies beside computing take streams and events, more than a line",
            "with torch.autograd.graph.save_on_cpu(pin_memory=True):  # all saved tensors, and waits for each copy\n"
            "    loss = criterion(model(x), y)",
        )


def _carried_bytes(observation: Observation) -> int:
    """Return what goes out in the time of a forward, and comes back in that of a backward.

    Raises:
        DoesNotApply: the rates, or the phases, are not known.
    """
    card = card_of(observation)
    copies = card.copies if card is not None else ()
    rates = [
        (one.device_to_pinned_bytes_per_s, one.pinned_to_device_bytes_per_s)
        for one in copies
        if one.device_to_pinned_bytes_per_s is not None and one.pinned_to_device_bytes_per_s is not None
    ]
    if not rates:
        raise DoesNotApply("the copy rate of the link is not known: hotloop machine measures it")
    times = [observation.phases.get(phase) for phase in (Phase.FORWARD, Phase.BACKWARD)]
    forward, backward = times
    if forward is None or backward is None:
        raise DoesNotApply("the times of forward and backward are not known")
    out, back = rates[0]
    return int(min(out.median * forward.median_s, back.median * backward.median_s))
