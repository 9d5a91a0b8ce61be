"""The optimizations that compute with fewer bits, in the order in which they are shown."""

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.catalogue.precision.autocast_fp16 import AutocastFp16
from hotloop.optimize.catalogue.precision.float8_training import Float8Training
from hotloop.optimize.catalogue.precision.int8_training import Int8Training
from hotloop.optimize.catalogue.precision.lossy_in_half import LossyInHalf
from hotloop.optimize.catalogue.precision.slow_in_half import SlowInHalf
from hotloop.optimize.catalogue.precision.tf32_matmul import Tf32Matmul
from hotloop.optimize.optimization import Optimization

FAMILY: tuple[type[Optimization], ...] = (
    AutocastBf16,
    SlowInHalf,
    LossyInHalf,
    AutocastFp16,
    Float8Training,
    Int8Training,
    Tf32Matmul,
)
