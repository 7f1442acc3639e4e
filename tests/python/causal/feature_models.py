"""Small models in the layouts of scGPT and scBERT: the same modules under the same names."""

import torch
from torch import nn
from torch.nn import functional as F


class GeneEncoder(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.embedding = nn.Embedding(count, width)
        self.enc_norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.enc_norm(self.embedding(x))


class ContinuousValueEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(1, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(self.linear2(F.relu(self.linear1(x.unsqueeze(-1)))))


class ScGpt(nn.Module):
    """Ids of genes and values, in any order; a post-norm nn.TransformerEncoder."""

    def __init__(self, count, width=16, heads=2, layers=2, classes=3):
        super().__init__()
        self.encoder = GeneEncoder(count, width)
        self.value_encoder = ContinuousValueEncoder(width)
        layer = nn.TransformerEncoderLayer(width, heads, 32, 0.0, batch_first=True)
        self.transformer_encoder = nn.TransformerEncoder(layer, layers)
        self.cls_decoder = nn.Linear(width, classes)

    def _encode(self, src, values, src_key_padding_mask=None):
        total = self.encoder(src) + self.value_encoder(values)
        return self.transformer_encoder(total, src_key_padding_mask=src_key_padding_mask)

    def forward(self, src, values, src_key_padding_mask=None):
        hidden = self._encode(src, values, src_key_padding_mask)
        return hidden, self.cls_decoder(hidden[:, 0])


class SelfAttention(nn.Module):
    """As in performer-pytorch, with attention that is linear in the length."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.to_out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            to(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for to in (self.to_q, self.to_k, self.to_v)
        )
        q, k = F.relu(q) + 1e-3, F.relu(k) + 1e-3
        context = k.transpose(-1, -2) @ v
        out = (q @ context) / (q @ k.sum(-2).unsqueeze(-1))
        return self.to_out(out.transpose(1, 2).flatten(2))


class PreLayerNorm(nn.Module):
    def __init__(self, width, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(width), fn

    def forward(self, x):
        return self.fn(self.norm(x))


class ScBert(nn.Module):
    """Bins of all genes in one order, and a last token that stands for the cell."""

    def __init__(self, bins=5, width=16, heads=4, layers=2):
        super().__init__()
        self.token_emb = nn.Embedding(bins + 2, width)
        self.performer = nn.Module()
        self.performer.net = nn.Module()
        self.performer.net.layers = nn.ModuleList(
            nn.ModuleList(
                [
                    PreLayerNorm(width, SelfAttention(width, heads)),
                    PreLayerNorm(width, nn.Sequential(nn.Linear(width, 32), nn.GELU(),
                                                      nn.Linear(32, width))),
                ]
            )
            for _ in range(layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(width)
        self.to_out = nn.Linear(width, bins + 2)

    def forward(self, x):
        x = self.token_emb(x)
        for attention, feed in self.performer.net.layers:
            x = x + attention(x)
            x = x + feed(x)
        return self.to_out(self.norm(x))


def tiny(kind, **options):
    """A model with random weights."""
    torch.manual_seed(0)
    return kind(**options)
