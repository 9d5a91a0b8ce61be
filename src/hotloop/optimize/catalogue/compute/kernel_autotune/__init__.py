"""kernel_autotune: convolution kernels chosen by measuring them."""
