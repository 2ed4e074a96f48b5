"""Inputs and weights, drawn so that a wrong kernel shows.

Random weights, since no model hub is needed then, but not naive: every layer keeps the scale of
its input, heads that an architecture starts at zero are drawn anew, and BatchNorm holds the
statistics of real activations. So outputs depend on the inputs.
"""

import dataclasses

import torch
import torch.nn.functional as F
import transformers
from torch import nn

ROWS = 3


@dataclasses.dataclass
class Architecture:
    """One network, ready for export."""

    name: str
    module: nn.Module  # forward takes the inputs in order and returns a tensor or a tuple
    inputs: dict  # name -> tensor of ROWS rows, all distinct
    outputs: list  # names
    attention_layers: int = 0
    dynamic_sequence: bool = False  # axis 1 of every input is dynamic too
    keep_batchnorm: bool = False  # ask the exporter not to fold BatchNorm into Conv
    exporters: tuple = ("torchscript", "dynamo")
    opset: int = 0  # 0: the exporter's usual one


def smooth_images(channels, size, seed):
    """Images with the low frequencies and the differing brightness of photographs."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(ROWS, channels, 7, 7, generator=generator)
    images = F.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=False)
    offset = torch.randn(ROWS, channels, 1, 1, generator=generator)
    return images + offset + 0.1 * torch.randn(ROWS, channels, size, size, generator=generator)


def token_inputs(vocabulary, length, seed, token_types=False):
    """Token ids with right padding of a different length in every row."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, vocabulary, (ROWS, length), generator=generator)
    mask = torch.ones(ROWS, length, dtype=torch.int64)
    for row in range(1, ROWS):
        mask[row, length - row * length // 4 :] = 0
    inputs = {"input_ids": ids * mask, "attention_mask": mask}
    if token_types:
        types = (torch.arange(length) >= length // 2).to(torch.int64).repeat(ROWS, 1)
        inputs["token_type_ids"] = types * mask
    return inputs


def draw_weights(module, seed, embedding_std=0.3):
    """Draws every parameter so that each layer keeps the scale of its input."""
    generator = torch.Generator().manual_seed(seed)

    def normal_(parameter, mean, std):
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data.copy_(mean + std * noise)

    for layer in module.modules():
        if isinstance(layer, nn.Embedding):
            normal_(layer.weight, 0.0, embedding_std)
            continue
        for name, parameter in layer.named_parameters(recurse=False):
            if parameter.ndim == 1:
                norm_weight = name == "weight"  # of a LayerNorm, RMSNorm or BatchNorm
                normal_(parameter, 1.0 if norm_weight else 0.0, 0.1)
            elif isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
                fan_in = parameter[0].numel()
                if isinstance(layer, nn.ConvTranspose2d):
                    fan_in = parameter.shape[0]  # stride equals the kernel's extent here
                normal_(parameter, 0.0, (2.0 / fan_in) ** 0.5)
            elif isinstance(layer, transformers.pytorch_utils.Conv1D):
                normal_(parameter, 0.0, parameter.shape[0] ** -0.5)
            elif name in ("position_embeddings", "pos_embedding", "cls_token", "class_token"):
                normal_(parameter, 0.0, embedding_std)
            else:
                normal_(parameter, 0.0, parameter.shape[-1] ** -0.5)
    return module


def settle_batchnorm(module, inputs, seed):
    """Gives every BatchNorm the statistics of what it reads, plus the drift of training. Front to
    back, so that layers see what drifted in front of them and no drift grows with the depth. Half
    of the rows are noise: what smooth images alone leave near zero would be amplified without end
    for others."""
    generator = torch.Generator().manual_seed(seed)
    images = [
        torch.cat([value, torch.randn(value.shape, generator=generator)])
        for value in inputs.values()
    ]

    def settle(layer, arguments):
        variance, mean = torch.var_mean(arguments[0], (0, 2, 3), correction=0)
        drift = torch.randn(mean.shape, generator=generator)
        layer.running_var.copy_(variance * torch.exp(0.2 * drift))
        layer.running_mean.copy_(mean + 0.1 * drift * variance.sqrt())

    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    hooks = [layer.register_forward_pre_hook(settle) for layer in norms]
    module.eval()
    with torch.no_grad():
        module(*images)
    for hook in hooks:
        hook.remove()
    return module
