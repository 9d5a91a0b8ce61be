"""PyTorch traces as facts: read, analyze, compare, convert; needs neither torch nor a device."""

from hotloop.trace.analysis import TraceAnalysis, analyze_trace
from hotloop.trace.ranks.study import TraceReport, analyze
from hotloop.trace.read.reader import read_trace, read_traces
from hotloop.trace.read.trace import Trace

__all__ = ["Trace", "TraceAnalysis", "TraceReport", "analyze", "analyze_trace", "read_trace", "read_traces"]
