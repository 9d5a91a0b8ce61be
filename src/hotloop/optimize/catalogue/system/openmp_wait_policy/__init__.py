"""openmp_wait_policy: threads sleep at barriers instead of spinning."""
