"""A device that works off what the host gives it, on a clock of its own, in the shape of `torch.cuda`.

The host's clock is turned by the tests: `host.work(ms)`. A kernel takes the host its launch and the device its time;
the queue of launches is bounded, so that a host that runs too far ahead waits, as CUDA's does.
"""

from tests.simulated_device.device import Event, Graph, Host, SimulatedCuda, Stream
from tests.simulated_device.program import Program

__all__ = ["Event", "Graph", "Host", "Program", "SimulatedCuda", "Stream"]
