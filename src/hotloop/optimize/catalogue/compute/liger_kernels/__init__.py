"""liger_kernels: layers of a transformers model by the kernels of Liger."""
