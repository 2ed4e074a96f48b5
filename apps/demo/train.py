"""Trains the demo's network and writes digits.onnx, test_images.npz and test_labels.npz.

    python3 train.py [FOLDER]

The data are scikit-learn's digits (1,797 real handwritten digits of 8 x 8 pixels), a fifth of them
held out. The network is small, but has what Kiln fuses: convolution, BatchNorm, a residual sum,
attention, LayerNorm and GELU. Needs torch and scikit-learn; the results are committed, so that the
demo needs neither. Two runs with the same versions give the same bytes.
"""

import pathlib
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

WIDTH, HEADS, TOKENS, EPOCHS = 32, 2, 16, 40


def convolution(inputs, stride=1):
    kernel = nn.Conv2d(inputs, WIDTH, 3, stride=stride, padding=1, bias=False)
    return nn.Sequential(kernel, nn.BatchNorm2d(WIDTH))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (
            linear(x).reshape(-1, TOKENS, HEADS, WIDTH // HEADS).transpose(1, 2)
            for linear in self.qkv
        )
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        context = scores.softmax(-1) @ v
        return self.out(context.transpose(1, 2).reshape(-1, TOKENS, WIDTH))


class Digits(nn.Module):
    """Image [n, 1, 8, 8] in 0..1 -> logits [n, 10]."""

    def __init__(self):
        super().__init__()
        self.stem = convolution(1)
        self.residual = nn.ModuleList([convolution(WIDTH), convolution(WIDTH)])
        self.tokens = convolution(WIDTH, stride=2)
        self.position = nn.Parameter(0.02 * torch.randn(1, TOKENS, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, image):
        x = F.relu(self.stem(image))
        x = F.relu(x + self.residual[1](F.relu(self.residual[0](x))))
        x = F.relu(self.tokens(x)).reshape(-1, WIDTH, TOKENS).transpose(1, 2) + self.position
        x = x + self.attention(self.norms[0](x))
        x = x + self.mlp(self.norms[1](x))
        return self.head(self.norms[2](x).mean(1))


def split_data():
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    labels = data.target.astype(np.int64)
    return train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)


def train(images, labels):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = Digits()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    batches = EPOCHS * ((len(images) + 63) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=batches)
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(64):
            shift = tuple(torch.randint(-1, 2, (2,)).tolist())
            batch = images[chosen].roll(shift, dims=(2, 3))
            loss = F.cross_entropy(model(batch), labels[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return model.eval()


def export(model, path):
    torch.onnx.export(
        model,
        (torch.zeros(2, 1, 8, 8),),
        path,
        dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,  # keeps BatchNorm: folding it is Kiln's work
        opset_version=17,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
    )
    onnx.checker.check_model(path, full_check=True)


def main():
    default = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    train_images, test_images, train_labels, test_labels = split_data()
    model = train(train_images, train_labels)
    with torch.no_grad():
        predicted = model(torch.from_numpy(test_images)).argmax(1).numpy()
    right = int((predicted == test_labels).sum())
    print(f"held-out accuracy: {right} of {len(test_labels)} ({right / len(test_labels):.2%})")
    export(model, str(folder / "digits.onnx"))
    np.savez(folder / "test_images.npz", image=test_images)
    np.savez(folder / "test_labels.npz", label=test_labels)


if __name__ == "__main__":
    main()
