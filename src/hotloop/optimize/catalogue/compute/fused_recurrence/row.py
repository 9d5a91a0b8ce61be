"""fused_recurrence: a loop that calls a recurrent cell for every time step becomes one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hotloop.model.observation import Observation
from hotloop.model.optimization import Candidate, Numerics
from hotloop.optimize.catalogue.compute.fused_recurrence.activation import RecurrentCalls
from hotloop.optimize.catalogue.compute.fused_recurrence.pattern import time_loops
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.optimize.program.loops_of_source import faster_loops
from hotloop.optimize.program.second_derivatives import who_differentiates_twice
from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob

if TYPE_CHECKING:
    from hotloop.model.sites import Sites
    from hotloop.source.draft import Editor
    from hotloop.source.outcome import Rewrite

FASTER = 1.5
"""What the order of trials goes by; small cells gain more."""


class FusedRecurrence(Optimization):
    """Make all time steps of a recurrent cell in one call of torch's LSTM, GRU or RNN.

    What it does: where a loop over time calls a cell (`h, c = self.cell(x[:, t], (h, c))`, also several in turn) whose
    inputs are known before the loop, one call of torch's makes all steps, and the loop takes each step's output from
    it. A cell is torch's own (`LSTMCell`, `GRUCell`, `RNNCell`), or the program's: which gates its linear layers hold
    is told by what it gives for inputs that are made up. The first two times a loop runs as it is, and outputs, last
    states and all gradients of the one call are compared with its own, in each precision and mode that it runs in. The
    program runs changed as it is read; no file is.

    Why it is faster: each step pays for the interpreter, a dozen small operations and as many in the backward pass.
    One call multiplies the inputs of all steps at once, and cuDNN and oneDNN have kernels for the rest. Forward and
    backward over 50 steps took so many times less on one core of an AMD EPYC (2026-11-23; processor time, 15 turns,
    median [lowest, highest]): `LSTMCell` of width 64, batches of 16, 3.5 [3.3, 3.7]; of width 256, batches of 32, 1.2
    [1.1, 1.3]; an own cell of width 128, batches of 32, 1.6 [1.5, 1.8].

    When it does not help: few steps, wide cells on a CPU. Left alone are loops that choose an input by the output
    before (decoders), change the state themselves (masks, attention), read an LSTM's inner state at every step, or may
    end early; cells with normalization, dropout or hooks; programs that differentiate a gradient, which cuDNN cannot.

    Effect on numerics: sums in another order.

    Example: `outputs, (h, c) = nn.LSTM(64, 128, batch_first=True)(x)` in the place of a loop over `nn.LSTMCell`

    References: torch.nn.LSTM; Appleyard, Kocisky & Blunsom 2016, Optimizing performance of recurrent neural networks on
    GPUs.
    """

    name: ClassVar[str] = "fused_recurrence"
    family: ClassVar[str] = "compute"
    numerics: ClassVar[Numerics] = Numerics.TOLERANCE
    edits_source: ClassVar[bool] = True
    interacts: ClassVar[frozenset[str]] = frozenset({"compile"})

    def candidates(self, observation: Observation) -> Sequence[Candidate]:
        """Return the one candidate where such a loop takes a part of the step."""
        if any(root.compiled for root in observation.program.roots):
            raise DoesNotApply("the program compiles its model, loops over time with it")
        if who := who_differentiates_twice(observation):
            raise DoesNotApply(f"{who} differentiates a gradient, which torch's fused recurrence cannot")
        prior = faster_loops(
            observation,
            time_loops,
            "loops over time",
            "no loop of the program calls a recurrent cell step by step",
            FASTER,
        )
        return [self.candidate(prior=prior)]

    def activation(self, params: Mapping[str, Any]) -> Activation:
        """Return what changes the source as it is read."""
        return RecurrentCalls(at_once=True)

    def knob(self, params: Mapping[str, Any]) -> Knob:
        """Return the same, with the loop while it is off."""
        return RecurrentCalls(at_once=False)

    def rewrite(self, source: Editor, sites: Sites, params: Mapping[str, Any]) -> Rewrite:
        """Refuse: which layer takes a cell's place decides the names in checkpoints, which is the user's matter."""
        from hotloop.source.outcome import Refused

        return Refused(
            "a layer in the place of a cell changes the names in your checkpoints",
            "self.rnn = nn.LSTM(inputs, width, batch_first=True)  # in __init__, for nn.LSTMCell(inputs, width)\n"
            "outputs, (h, c) = self.rnn(x, (h[None], c[None]))  # in the place of the loop over x[:, t]",
        )
