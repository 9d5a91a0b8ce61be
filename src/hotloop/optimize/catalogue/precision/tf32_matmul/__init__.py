"""tf32_matmul: fp32 matrix products on tensor cores, with TF32 inputs."""
