"""Synthetic eye patches kept in one memory-mapped file."""
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FULL_H, FULL_W = 42, 60
CROP_H, CROP_W = 36, 52


def render_patches(count, seed):
    rng = np.random.default_rng(seed)
    gaze = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
    path = os.path.join(tempfile.mkdtemp(prefix="gaze_"), "patches.u8")
    store = np.memmap(path, dtype=np.uint8, mode="w+", shape=(count, FULL_H, FULL_W))
    y, x = np.mgrid[0:FULL_H, 0:FULL_W].astype(np.float32)
    for begin in range(0, count, 500):
        look = gaze[begin : begin + 500, :, None, None]
        lid = ((x - FULL_W / 2) / 28) ** 2 + ((y - FULL_H / 2) / 15) ** 2
        iris = (x - FULL_W / 2 - 12 * look[:, 0]) ** 2 + (y - FULL_H / 2 - 6 * look[:, 1]) ** 2
        patch = 150 + 70 * (lid < 1) - 130 * ((iris < 60) & (lid < 1))
        patch = patch + rng.normal(0, 8, patch.shape)
        store[begin : begin + 500] = np.clip(patch, 0, 255).astype(np.uint8)
    store.flush()
    return path, gaze


class EyePatches(Dataset):
    def __init__(self, path, gaze, training):
        self.patches = np.memmap(path, dtype=np.uint8, mode="r", shape=(len(gaze), FULL_H, FULL_W))
        self.gaze = gaze
        self.training = training

    def __len__(self):
        return len(self.gaze)

    def __getitem__(self, i):
        top, left = (FULL_H - CROP_H) // 2, (FULL_W - CROP_W) // 2
        if self.training:
            jitter = torch.randint(0, 3, (2,))
            top, left = top + int(jitter[0]) - 1, left + int(jitter[1]) - 1
        patch = self.patches[i, top : top + CROP_H, left : left + CROP_W]
        return torch.from_numpy(patch.astype(np.float32) / 255.0).unsqueeze(0), self.gaze[i]


def gaze_loader(count, seed, batch, training):
    path, gaze = render_patches(count, seed)
    return DataLoader(
        EyePatches(path, gaze, training),
        batch_size=batch,
        shuffle=training,
        drop_last=training,
        num_workers=2,
        persistent_workers=True,
    )
