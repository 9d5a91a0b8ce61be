"""Leaf photographs (drawn on the fly once) with disease spots."""
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter
from torch.utils.data import Dataset

SIZE = 64
MEAN = np.array([0.32, 0.48, 0.25], dtype=np.float32)
STD = np.array([0.2, 0.2, 0.2], dtype=np.float32)


def draw_leaf(rng, label):
    green = int(rng.integers(110, 190))
    image = Image.new("RGB", (SIZE, SIZE), (235, 232, 225))
    pen = ImageDraw.Draw(image)
    pen.ellipse((6, 14, SIZE - 6, SIZE - 14), fill=(40, green, 45))
    pen.line((6, SIZE // 2, SIZE - 6, SIZE // 2), fill=(70, green - 30, 60), width=2)
    for _ in range(3 * label):
        x, y = rng.integers(14, SIZE - 18, 2)
        r = int(rng.integers(2, 5))
        pen.ellipse((int(x), int(y), int(x) + r, int(y) + r), fill=(120, 70, 30))
    return image


class Augment:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, image):
        rng = self.rng
        image = image.rotate(float(rng.uniform(-40, 40)), Image.Resampling.BICUBIC, fillcolor=(235, 232, 225))
        if rng.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        image = ImageEnhance.Brightness(image).enhance(float(rng.uniform(0.7, 1.3)))
        image = ImageEnhance.Color(image).enhance(float(rng.uniform(0.6, 1.4)))
        image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0.1, 1.2))))
        pixels = np.asarray(image, dtype=np.float32) / 255.0
        pixels = pixels + rng.normal(0, 0.03, pixels.shape).astype(np.float32)
        return np.clip(pixels, 0, 1)


class LeafSpots(Dataset):
    def __init__(self, n, grades=4, augment=True, seed=0):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, grades, n)
        self.images = [draw_leaf(rng, int(label)) for label in self.labels]
        self.augment = Augment(seed + 1) if augment else None

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment is not None:
            pixels = self.augment(image)
        else:
            pixels = np.asarray(image, dtype=np.float32) / 255.0
        pixels = (pixels - MEAN) / STD
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), int(self.labels[index])
