"""A trace in other formats: speedscope, Chrome JSON for Perfetto, Parquet; and without what is private."""

from hotloop.trace.convert.chrome import write_chrome
from hotloop.trace.convert.parquet import write_parquet
from hotloop.trace.convert.redact import redact
from hotloop.trace.convert.speedscope import write_speedscope

__all__ = ["redact", "write_chrome", "write_parquet", "write_speedscope"]
