"""Draws a small photo-like data set: one folder per class, JPEG files inside, the same files every time.

The eight classes differ in texture, shape and colour; position, size, tint, lighting and noise vary, so that a
network has something to learn. No file is downloaded.

    python make_data.py data                # 2,400 files, some ten seconds
    python make_data.py data --num 800
"""

import argparse
import os
import shutil
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 320, 240
VALIDATION_SHARE = 0.1
QUALITY = 88


def stripes(rng, x, y):
    """Parallel bands at any angle."""
    angle, period = rng.uniform(0, np.pi), rng.uniform(14, 36)
    return np.sin((x * np.cos(angle) + y * np.sin(angle)) * 2 * np.pi / period)


def checks(rng, x, y):
    """A chess board, a little turned."""
    angle, period = rng.uniform(-0.4, 0.4), rng.uniform(22, 50)
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    return np.sign(np.sin(u * 2 * np.pi / period) * np.sin(v * 2 * np.pi / period))


def rings(rng, x, y):
    """Waves around one centre."""
    cx, cy, period = rng.uniform(60, 260), rng.uniform(40, 200), rng.uniform(16, 40)
    return np.sin(np.hypot(x - cx, y - cy) * 2 * np.pi / period)


def dots(rng, x, y):
    """Round spots on a grid."""
    period = rng.uniform(20, 44)
    u, v = x + rng.uniform(0, period), y + rng.uniform(0, period)
    return np.where(np.cos(u * 2 * np.pi / period) + np.cos(v * 2 * np.pi / period) > 0.7, 1.0, -1.0)


def clouds(rng, x, y):
    """Smooth random blobs."""
    coarse = Image.fromarray(rng.uniform(-1, 1, (7, 9)).astype(np.float32))
    return 1.6 * np.asarray(coarse.resize((x.shape[1], y.shape[0]), Image.Resampling.BICUBIC))


def drawn(shape):
    """A texture function that draws a few filled shapes."""

    def texture(rng, x, y):
        canvas = Image.new("L", (x.shape[1], y.shape[0]), 0)
        pen = ImageDraw.Draw(canvas)
        for _ in range(rng.integers(3, 8)):
            cx, cy, r = rng.uniform(30, 290), rng.uniform(30, 210), rng.uniform(16, 42)
            turn = rng.uniform(0, 360)
            if shape == "disc":
                pen.ellipse((cx - r, cy - r, cx + r, cy + r), fill=255)
            else:
                pen.regular_polygon((cx, cy, r), n_sides=3 if shape == "triangle" else 4, rotation=turn, fill=255)
        return np.asarray(canvas, dtype=np.float32) / 127.5 - 1.0

    return texture


CLASSES = {
    "checks": checks,
    "clouds": clouds,
    "discs": drawn("disc"),
    "dots": dots,
    "rings": rings,
    "squares": drawn("square"),
    "stripes": stripes,
    "triangles": drawn("triangle"),
}


def picture(rng, texture, x, y):
    """One picture: the texture between two random colours, under uneven light, with sensor noise."""
    mix = np.clip(texture(rng, x, y), -1, 1).astype(np.float32) * 0.5 + 0.5
    light = 1 + rng.uniform(-0.3, 0.3) * (x[:1] / WIDTH - 0.5) + rng.uniform(-0.3, 0.3) * (y[:, :1] / HEIGHT - 0.5)
    noise = 9 * rng.standard_normal((HEIGHT, WIDTH), dtype=np.float32)
    pixels = np.empty((HEIGHT, WIDTH, 3), dtype=np.uint8)
    for channel in range(3):
        back, front = rng.uniform(20, 120), rng.uniform(110, 235)
        pixels[..., channel] = np.clip((back + (front - back) * mix) * light.astype(np.float32) + noise, 0, 255)
    return Image.fromarray(pixels)


def make(root, num_files=2400, seed=7):
    """Writes `num_files` JPEG files below `root`/train and `root`/val, one folder per class.

    They are drawn beside `root` and moved there at the end, so that a folder that exists is complete, also when
    two programs start at once.
    """
    root = Path(root)
    unfinished = Path(f"{root}.{os.getpid()}.part")
    every = round(1 / VALIDATION_SHARE)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    for label, (name, texture) in enumerate(CLASSES.items()):
        for part in ("train", "val"):
            (unfinished / part / name).mkdir(parents=True, exist_ok=True)
        for index in range(num_files // len(CLASSES)):
            part = "val" if index % every == 0 else "train"
            rng = np.random.default_rng((seed, label, index))
            file = unfinished / part / name / f"{name}_{index:05d}.jpg"
            picture(rng, texture, x, y).save(file, quality=QUALITY)
    try:
        unfinished.rename(root)
    except OSError:  # somebody else was first
        shutil.rmtree(unfinished)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the example's JPEG data set.")
    parser.add_argument("root", nargs="?", default=Path(__file__).parent / "data")
    parser.add_argument("--num", type=int, default=2400, help="number of files")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    make(args.root, args.num, args.seed)
    print(f"{args.num} files in {args.root}")
