"""Networks of images: a U-Net, tiny versions of ResNet and MobileNetV3, and their preparation."""

import torch
import torch.nn.functional as F
from drawing import Architecture, draw_weights, settle_batchnorm, smooth_images
from torch import nn


def image_network(name, module, size, seed, channels=3, outputs=("logits",), **extra):
    inputs = {"image": smooth_images(channels, size, seed)}
    draw_weights(module, seed)
    settle_batchnorm(module, inputs, seed)
    return Architecture(name, module.eval(), inputs, list(outputs), **extra)


class UNet(nn.Module):
    """A U-Net that climbs back by ConvTranspose once and by Resize for the other levels."""

    def __init__(self, widths, channels=3, classes=4):
        super().__init__()
        self.down = nn.ModuleList()
        previous = channels
        for width in widths:
            self.down.append(self.block(previous, width))
            previous = width
        self.up = nn.ModuleList()
        self.merge = nn.ModuleList()
        for level, width in enumerate(reversed(widths[:-1])):
            if level == 0:
                self.up.append(nn.ConvTranspose2d(previous, width, 2, stride=2))
            else:
                bilinear = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
                nearest = nn.Upsample(scale_factor=2, mode="nearest")
                resize = bilinear if level == 1 else nearest
                self.up.append(nn.Sequential(resize, nn.Conv2d(previous, width, 1)))
            self.merge.append(self.block(2 * width, width))
            previous = width
        self.head = nn.Conv2d(previous, classes, 1)

    @staticmethod
    def block(inputs, outputs):
        layers = []
        for first in (inputs, outputs):
            layers += [
                nn.Conv2d(first, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
        return nn.Sequential(*layers)

    def forward(self, x):
        skips = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def tiny_resnet():
    from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

    class Mixed(nn.Module):
        """One residual block of each kind behind ResNet's stem."""

        def __init__(self):
            super().__init__()
            whole = ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=16)
            self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16))
            self.pool = whole.maxpool
            self.basic = BasicBlock(16, 16)
            shortcut = nn.Sequential(nn.Conv2d(16, 64, 1, 2, bias=False), nn.BatchNorm2d(64))
            self.bottleneck = Bottleneck(16, 16, stride=2, downsample=shortcut)
            self.fc = nn.Linear(64, 10)

        def forward(self, x):
            x = self.pool(torch.relu(self.stem(x)))
            x = self.bottleneck(self.basic(x))
            return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

    return Mixed()


def tiny_mobilenet():
    """Inverted residuals with squeeze-and-excitation, hardswish and depthwise convolutions."""
    from functools import partial

    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3

    config = partial(InvertedResidualConfig, width_mult=0.5)
    layers = [
        config(16, 3, 16, 16, True, "RE", 2, 1),
        config(16, 5, 48, 24, True, "HS", 2, 1),
        config(24, 5, 48, 24, True, "HS", 1, 1),
        config(24, 3, 48, 24, False, "RE", 1, 1),
    ]
    return MobileNetV3(layers, last_channel=64, num_classes=10)


def tiny_convnext():
    """Two stages of residuals with channels last around depthwise convolutions."""
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 2)], num_classes=10)
