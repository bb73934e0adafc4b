"""LANET in the layout of the authors' released code: padded sets, dense one-hots, PyTorch's Transformer encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from tg_mlc.sequences import LANET, NextSetDataset

Sample = dict[str, Tensor]


class PaddedWindows(Dataset[Sample]):
    """Targets with the sets of their window padded to the number of labels, made one by one.

    Args:
        dataset (NextSetDataset): The events.
        window_size (int): Number of events of a window.
    """

    def __init__(self, dataset: NextSetDataset, window_size: int) -> None:
        self.dataset = dataset
        self.window_size = window_size

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Sample:
        data, num_labels = self.dataset, self.dataset.num_labels
        entity = data.entity_of[index]
        label = np.full((self.window_size, num_labels), num_labels)
        bins = np.zeros((self.window_size, num_labels), dtype=np.int64)
        days = np.zeros(self.window_size, dtype=np.float32)
        for event in range(max(int(data.ptr[entity]), index - self.window_size), index):
            step, found = self.window_size - index + event, slice(*data.y.indptr[event : event + 2])
            count = found.stop - found.start
            label[step, :count], bins[step, :count] = data.y.indices[found], data._bin[found]
            days[step] = data._dt[event]
        return {
            "label": torch.from_numpy(label),
            "bin": torch.from_numpy(bins),
            "days": torch.from_numpy(days),
            "entity": torch.tensor(data.entity_index[entity]),
            "y": torch.from_numpy(data.y[[index]].toarray()[0]),
        }


class ReleasedLANET(nn.Module):
    """The weights of a :class:`~tg_mlc.sequences.LANET` as published, along all pairs of labels.

    Args:
        model (LANET): The model, whose options are the defaults.
        dropout (float, optional): Dropout of the layers. (default: :obj:`0.2`)
    """

    def __init__(self, model: LANET, dropout: float = 0.2) -> None:
        super().__init__()
        views, time = model.views, model.views.time
        assert time is not None
        assert views.bin is not None
        assert model.entity is not None
        self.num_labels, width = views.num_labels, views.width
        self.label, self.days, self.position, self.bin, self.entity = (
            nn.Embedding.from_pretrained(table.weight.detach().clone(), freeze=False)
            for table in (views.label, time.days, time.position, views.bin, model.entity)
        )
        convs = model.labels.convs
        layer = nn.TransformerEncoderLayer(width, convs[0].heads, width, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, len(convs), enable_nested_tensor=False)
        for theirs, ours in zip(self.encoder.layers, convs, strict=True):
            theirs.load_state_dict(_renamed(ours.state_dict()))
        self.dropout = nn.Dropout(model.dropout.p)
        self.linear = nn.Linear(width, 1)
        self.linear.load_state_dict(model.readout.state_dict())

    def forward(self, batch: Sample) -> Tensor:
        """Returns the logits."""
        one_hot = F.one_hot(batch["label"], self.num_labels + 1).float()  # [B, window_size, L, L + 1]
        days = self.days(batch["days"].long().clamp(max=self.days.num_embeddings - 1))
        order = torch.arange(batch["days"].size(1) - 1, -1, -1)
        time = (days + self.position(order)).unsqueeze(2).expand(*batch["label"].shape, -1)
        views = torch.cat([time, self.bin(batch["bin"])], dim=-1)  # [B, window_size, L, 2 C]
        summed = torch.bmm(one_hot.flatten(1, 2).mT, views.flatten(1, 2))[:, :-1]  # the padding's row is the last
        labels = torch.cat([self.label.weight.expand(len(summed), -1, -1), summed], dim=-1)
        x = torch.cat([self.entity(batch["entity"]).unsqueeze(1), labels], dim=1)
        logits: Tensor = self.linear(self.dropout(self.encoder(x)[:, 1:])).squeeze(-1)
        return logits


def _renamed(state: dict[str, Any]) -> dict[str, Tensor]:
    """The weights of a block under the names of PyTorch's layer."""
    pairs = {"self_attn.out_proj": "lin_out", "linear1": "mlp.0", "linear2": "mlp.2"}
    pairs |= {"norm1": "attention_norm", "norm2": "mlp_norm"}
    renamed = {f"{new}.{kind}": state[f"{old}.{kind}"] for new, old in pairs.items() for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        parts = [state[f"lin_{name}.{kind}"] for name in ("query", "key", "value")]
        renamed[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
    return renamed
