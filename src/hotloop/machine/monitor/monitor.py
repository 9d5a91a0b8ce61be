"""Watches the machine from a thread of our own process while a program runs."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from hotloop.machine.devices.amd import open_amd
from hotloop.machine.devices.nvml import open_nvml
from hotloop.machine.monitor.columns import Columns
from hotloop.machine.monitor.prometheus import write_textfile
from hotloop.machine.monitor.source import Sample, Source
from hotloop.machine.monitor.sources import GpuSource, host_sources


class Monitor:
    """Samples the machine about once a second, between `with` and its end.

    Metrics that a machine does not report have no column; nothing is ever made up. A source that fails with an error of
    the operating system is left out of that sample, and `errors` says why. Measured cost of the host's
    sources at one sample a second: 2.5 ms of one core a second, with 85 processes on the machine.

    Args:
        pids: the roots of our process trees; everything else is foreign.
        interval_s: time between samples.
        sources: what to sample; the host and every GPU a driver library answers for, unless told.
        prometheus: a file that holds the newest sample as Prometheus text, replaced at each sample.
        clock: seconds; monotonic.
    """

    def __init__(
        self,
        pids: tuple[int, ...] = (),
        *,
        interval_s: float = 1.0,
        sources: Sequence[Source] | None = None,
        prometheus: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.columns = Columns()
        self.errors: dict[str, str] = {}
        self._pids = pids
        self._interval_s = interval_s
        self._sources = sources
        self._prometheus = prometheus
        self._clock = clock
        self._libraries = ExitStack()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "Monitor":
        """Open the driver libraries and start the thread.

        Raises:
            OSError: the Prometheus file cannot be written.
        """
        if self._prometheus is not None:
            write_textfile(self._prometheus, {})
        sources = self._sources if self._sources is not None else self._all_sources()
        self._ended.clear()
        self._thread = threading.Thread(
            target=self._run, args=(sources,), name="hotloop-monitor", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take a last sample, end the thread, close the libraries."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._libraries.close()

    def sample(self, sources: Sequence[Source]) -> None:
        """Take one sample into the columns."""
        now_s = self._clock()
        sample: Sample = {}
        for source in sources:
            with self._noted(type(source).__name__):
                sample |= source.sample(now_s)
        self.columns.append(now_s, sample)
        if self._prometheus is not None:
            with self._noted(str(self._prometheus)):
                write_textfile(self._prometheus, sample)

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """One broken source must not end the others: the newest reason is kept."""
        try:
            yield
        except OSError as error:
            self.errors[what] = str(error)

    def _run(self, sources: Sequence[Source]) -> None:
        self.sample(sources)
        while not self._ended.wait(self._interval_s):
            self.sample(sources)
        self.sample(sources)

    def _all_sources(self) -> list[Source]:
        opened = [self._libraries.enter_context(library()) for library in (open_nvml, open_amd)]
        gpus = [GpuSource(reader, self._pids) for reader in opened if reader is not None]
        return [*host_sources(self._pids), *gpus]
