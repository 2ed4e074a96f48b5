"""The networks that Kiln is tried on, in two lists: `FULL` (as published) and `TINY`."""

import numpy as np
import torch
import torchvision
from attention import bert, gpt2, minilm, t5_encoder, vit_hugging_face, vit_torchvision
from convolutional import UNet, image_network, tiny_convnext, tiny_mobilenet, tiny_resnet

BERT_TINY = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
BERT_TINY |= dict(intermediate_size=48, max_position_embeddings=32)
GPT2_TINY = dict(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2, n_inner=48)
T5_TINY = dict(vocab_size=50, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2)
VIT_TINY = dict(image_size=16, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
VIT_TINY |= dict(patch_size=4, intermediate_size=48, num_labels=10)
TORCH_VIT_TINY = dict(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=32)
TORCH_VIT_TINY |= dict(mlp_dim=48, num_classes=10)
SWIN_TINY = dict(patch_size=[4, 4], embed_dim=32, depths=[2, 1], num_heads=[2, 4])
SWIN_TINY |= dict(window_size=[4, 4], mlp_ratio=1.5, num_classes=10)
DENSENET_TINY = dict(growth_rate=8, block_config=(2, 2), num_init_features=16, num_classes=10)
BERT_LARGE = dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16)
BERT_LARGE |= dict(intermediate_size=4096)
GPT2_MEDIUM = dict(n_embd=1024, n_layer=24, n_head=16)
VIT_LARGE = dict(image_size=224, patch_size=16, num_layers=24, num_heads=16, hidden_dim=1024)
VIT_LARGE |= dict(mlp_dim=4096)
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
    "convnext": lambda n: image_network(n, tiny_convnext(), 32, 10),
    "swin": lambda n: image_network(
        n, torchvision.models.SwinTransformer(**SWIN_TINY), 32, 11, attention_layers=3
    ),
    "densenet": lambda n: image_network(n, torchvision.models.DenseNet(**DENSENET_TINY), 32, 12),
}

FULL = {
    "bert-large": lambda n: bert(n, BERT_LARGE, 384, 1),
    "vit-l16": lambda n: vit_torchvision(n, 5, **VIT_LARGE),
    "gpt2-small": lambda n: gpt2(n, {}, 1024, 2, masked=False),
    "gpt2-medium": lambda n: gpt2(n, GPT2_MEDIUM, 1024, 2, masked=False),
    "mobilenet-v3-large": lambda n: image_network(
        n, torchvision.models.mobilenet_v3_large(), 224, 7
    ),
    "efficientnet-b0": lambda n: image_network(n, torchvision.models.efficientnet_b0(), 224, 9),
    "convnext-t": lambda n: image_network(n, torchvision.models.convnext_tiny(), 224, 10),
    "swin-t": lambda n: image_network(
        n, torchvision.models.swin_t(), 224, 11, attention_layers=12
    ),
    "densenet121": lambda n: image_network(n, torchvision.models.densenet121(), 224, 12),
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
