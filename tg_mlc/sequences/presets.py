"""Settings of trainings on sequences: those of the LANET paper, and ours for LANET with a memory."""

from __future__ import annotations

from typing import Any

#: Arguments of :class:`~tg_mlc.training.MultiLabelModule`, :func:`~tg_mlc.training.fit` and
#: :class:`~tg_mlc.training.MultiLabelDataModule` from the `"Label Attention Network for Sequential Multi-Label
#: Classification" <https://arxiv.org/abs/2303.00280>`_ paper; patience and epochs are those of its released code, which
#: starts from a learning rate of 1e-4. The paper's multi-label cross-entropy is the binary one of each label, which is
#: the default objective here.
PAPER: dict[str, dict[str, Any]] = {
    "module": {"lr": 1e-3, "lr_schedule": "plateau"},
    "fit": {"max_epochs": 500, "patience": 15, "monitor": "val/loss"},
    "data": {"batch_size": 32},
}
#: For LANET with a memory: few epochs, as most of what there is to learn comes first, and the loss of ranks; and the
#: sizes, as arguments of :class:`~tg_mlc.sequences.LANET` and :func:`~tg_mlc.sequences.personal_memory`.
MEMORY: dict[str, dict[str, Any]] = {
    "model": {"channels": 8, "num_layers": 1, "heads": 2, "dropout": 0.1},
    "memory": {"channels": 8, "hidden_channels": 64},
    "module": {
        "objective": {"class": "BinaryObjective", "loss_name": "listwise"},
        "lr": 2e-3,
        "weight_decay": 1e-2,
        "lr_schedule": "cosine",
        "warmup": 0.05,
    },
    "fit": {"max_epochs": 6, "patience": None, "monitor": "val/loss", "ema_decay": 0.998},
    "data": {"batch_size": 32},
}
