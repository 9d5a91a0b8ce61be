"""No torch at all: a logistic regression in numpy, for some five seconds."""

import sys
import time

import numpy as np

seconds = float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 5.0
rng = np.random.default_rng(0)
x = rng.normal(size=(2000, 30))
y = (x @ rng.normal(size=30) > 0).astype(float)
w, step, end = np.zeros(30), 0, time.time() + seconds
while time.time() < end:
    p = 1 / (1 + np.exp(-x @ w))
    w -= 0.1 * x.T @ (p - y) / len(x)
    step += 1
    if step % 5000 == 0:
        print(f"step {step} accuracy {((p > 0.5) == y).mean():.3f}", flush=True)
assert "torch" not in sys.modules
print("done")
