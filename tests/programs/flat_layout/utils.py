"""The learning-rate rule; imported by its short name."""


def set_lr(optimizer, step, base=3e-3, warmup=20):
    for group in optimizer.param_groups:
        group["lr"] = base * min(1.0, (step + 1) / warmup)
