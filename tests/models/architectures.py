"""The networks that Kiln is tried on, in two lists: `FULL` (as published) and `TINY`."""

import numpy as np
import torch
import torchvision
from attention import bert, gpt2, minilm, t5_encoder, vit_hugging_face, vit_torchvision
from convolutional import UNet, image_network, tiny_mobilenet, tiny_resnet

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
