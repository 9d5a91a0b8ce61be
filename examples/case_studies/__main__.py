"""Run a case study and print its table.

    python -m examples.case_studies 1                      # image classification
    python -m examples.case_studies 2                      # memory of 7 billion parameters, planned
    python -m examples.case_studies 3 --budget 2m          # volumetric U-Net
    python -m examples.case_studies 6                      # text generation

The programs are sized for two CPU cores; `--full` takes the published sizes, for a GPU.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

from . import memory_claims, study
from .study import Row

HERE = Path(__file__).resolve().parent


def image_classification(args):
    """The lab in six parts: profile, loading, AMP, checkpointing for a larger batch, compile, one report."""
    size = ["--width", "64", "--size", "224", "--batch-size", "64"] if args.full else ["--depth", str(args.depth)]
    command = [sys.executable, str(HERE / "image_classification.py"), *size]
    batch = int(size[-1]) if args.full else 16
    rows = [
        Row("two loader workers", ("--workers", "2")),
        Row("AMP (bfloat16)", ("--amp",)),
        Row("channels-last", ("--channels-last",)),
        Row("checkpointing, twice the batch", ("--checkpoint", "--batch-size", str(2 * batch)), samples=2.0),
        Row("torch.compile", ("--compile",)),
    ]
    with folder_of(args) as folder:
        subprocess.run([sys.executable, *command[1:], "--steps", "0"], cwd=folder, check=True)  # draws the data
        print("1. profile", flush=True)
        subprocess.run([*study.HOTLOOP, "diagnose", *command], cwd=folder, check=False)
        results, whole, samples = study.waterfall(command, rows[: args.rows], folder=folder, budget=args.budget)
        study.show(f"Case study 1: ResNet-{args.depth} on JPEG files", results, whole, samples, command)


def volumetric_unet(args):
    """Layout, AMP and checkpointing; OneCycle by the steps to the same loss; memory by base channels."""
    size = ["--size", "96"] if args.full else []
    command = [sys.executable, str(HERE / "volumetric_unet.py"), *size]
    rows = [
        Row("channels_last_3d", ("--channels-last",)),
        Row("AMP (bfloat16)", ("--amp",)),
        Row("checkpointing", ("--checkpoint",)),
    ]
    with folder_of(args) as folder:
        results, whole, samples = study.waterfall(command, rows[: args.rows], folder=folder, budget=args.budget)
        study.show("Case study 3: volumetric U-Net", results, whole, samples, command)
        one_cycle(command, folder, args)
        base_channels(command, (16, 32, 64) if args.full else (4, 8, 16), folder)


def one_cycle(command, folder, args):
    """Compare the steps to the same loss, seed by seed: a schedule is another training, not another speed."""
    ratios = []
    for seed in range(args.seeds):
        steps = [reached([*command, "--until-loss", str(args.loss), "--seed", str(seed), *more], folder) for more in ([], ["--one-cycle", str(args.cycle)])]
        if None not in steps:
            ratios.append(math.log(steps[0] / steps[1]))
    print(f"\nOneCycle: steps until the smoothed loss is below {args.loss}, constant rate over OneCycle of {args.cycle} steps")
    if len(ratios) < 3:
        print(f"  {len(ratios)} of {args.seeds} seeds reached it both ways: too few to tell (--loss, --seeds)")
        return
    low, middle, high = interval(ratios)
    told = f"{len(ratios)} seeds, Student's t of log ratios; above 1 OneCycle needs fewer; class: semantic"
    print(f"  {middle:.2f}x [{low:.2f}, {high:.2f}] ({told})")


def reached(command, folder):
    """Return the step at which a training reached its loss; None: it did not."""
    done = subprocess.run([sys.executable, *command[1:]], cwd=folder, capture_output=True, text=True, check=True)
    words = done.stdout.split()
    value, step = float(words[words.index("reached") + 1]), int(words[-1])
    wanted = float(command[command.index("--until-loss") + 1])
    return step if value < wanted else None


def interval(values):
    """Return the mean of log ratios with its 95% interval, as ratios."""
    from hotloop.stats.student import student_quantile

    mean = sum(values) / len(values)
    sd = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    reach = student_quantile(0.975, len(values) - 1) * sd / math.sqrt(len(values))
    return math.exp(mean - reach), math.exp(mean), math.exp(mean + reach)


def base_channels(command, widths, folder):
    """Print step and peak memory by base channels, plain and with checkpointing, as observed on this device."""
    rows = [("base channels", "step", "95% interval", "peak memory", "with checkpointing: step", "peak memory")]
    for width in widths:
        cells = [str(width)]
        for more in ([], ["--checkpoint"]):
            seen = study.observe([*command, "--base-channels", str(width), *more], folder=folder, steps=20)
            step = seen["step"]
            cells.append(study.time(step["median_s"]))
            if not more:
                cells.append(f"[{study.time(step['low_s'])}, {study.time(step['high_s'])}]")
            cells.append(study.memory(seen["memory"]["peak_bytes"]))
        rows.append(tuple(cells))
    print(f"\nBase channels on this device (hotloop observe; {seen['memory']['method']})\n")
    study.table(rows)


def text_generation(args):
    """Cache, inference mode, half precision and compile: requests in turns, and what somebody waits for in each."""
    size = ["--width", "1536", "--layers", "24", "--prompt", "512", "--new", "128"] if args.full else []
    command = [sys.executable, str(HERE / "text_generation.py"), *size]
    rows = [
        Row("keys and values kept (cache)", ("--cache",)),
        Row("inference_mode", ("--inference-mode",)),
        Row("weights in bfloat16", ("--half",)),
        Row("torch.compile, dynamic", ("--compile",)),
    ]
    with folder_of(args) as folder:
        results, whole, samples = study.waterfall(command, rows[: args.rows], folder=folder, budget=args.budget)
        study.show("Case study 6: text generation; a step is a request", results, whole, samples, command)
        kept = [word for each in results if each.kept for word in each.row.options]
        latencies([("as it was", command), ("all that was kept", [*command, *kept])][: 2 if kept else 1], folder)


def latencies(commands, folder):
    """Print time to first token and between tokens, and tokens a second, as observed."""
    rows = [("", "first token p50", "95% interval", "p99", "between tokens p50", "95% interval", "p99", "tokens/s")]
    for name, command in commands:
        seen = study.observe(command, folder=folder, steps=40)
        cells = [name]
        for part in (seen["inference"]["first_token"], seen["inference"]["between_tokens"]):
            cells += [study.time(part["p50_s"]), f"[{study.time(part['low_s'])}, {study.time(part['high_s'])}]", study.time(part["p99_s"])]
        rows.append((*cells, f"{seen['step']['tokens_per_s']:,.0f}"))
    print("\nWhat somebody waits for (hotloop observe)\n")
    study.table(rows)


def folder_of(args):
    """Return a context of the folder that sessions and data are written to."""
    if args.folder is None:
        return tempfile.TemporaryDirectory(prefix="hotloop-case-study-")
    args.folder.mkdir(parents=True, exist_ok=True)
    import contextlib

    return contextlib.nullcontext(args.folder)


def memory_claims_of_a_large_model(args):
    """What training a model of 7 billion parameters holds, by an estimator, beside five published figures."""
    with folder_of(args) as folder:
        memory_claims.show(HERE / "llama_memory.py", "A100 40GB", folder, () if args.rows is None else ("--layers", str(args.rows)))


STUDIES = {1: image_classification, 2: memory_claims_of_a_large_model, 3: volumetric_unet, 6: text_generation}

parser = argparse.ArgumentParser(prog="python -m examples.case_studies", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("number", type=int, choices=sorted(STUDIES))
parser.add_argument("--budget", default="90s", help="of each comparison")
parser.add_argument("--rows", type=int, help="only so many changes, the first ones")
parser.add_argument("--full", action="store_true", help="the published sizes, for a GPU")
parser.add_argument("--depth", type=int, choices=(18, 50), default=18, help="of case study 1")
parser.add_argument("--loss", type=float, default=0.3, help="of case study 3: what OneCycle is compared at")
parser.add_argument("--cycle", type=int, default=60, help="of case study 3: steps of the schedule")
parser.add_argument("--seeds", type=int, default=5, help="of case study 3")
parser.add_argument("--folder", type=Path, help="where data and sessions are kept; default: a temporary one")

if __name__ == "__main__":
    chosen = parser.parse_args()
    STUDIES[chosen.number](chosen)
