"""What another classifier says of the labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.nn.encoders.components import ptr_of


class LinearEvidence(nn.Module):
    r"""Scores of a linear model of words or vectors, which was fitted beforehand and is not trained any further.

    .. math::
        s_i = b_i + \sum_{w} x_w W_{wi}

    A model has seen the labels of the samples it was fitted on, and is too sure of them. For these, give the batch
    scores of models that were fitted without them (*e.g.* those of
    :meth:`~tg_mlc.baselines.LinearBaseline.cross_fit`) as the attribute :obj:`key`; where a batch has that attribute it
    is returned as it is.

    Args:
        num_inputs (int): The size of the vocabulary, or of a vector.
        num_labels (int): The number of labels :math:`L`.
        key (str, optional): The attribute of a batch that holds its scores, if they are known.
            (default: :obj:`"evidence"`)

    Shapes:
        - **input:** a batch with words :obj:`x` of shape :math:`(N)` and, if they carry any, their values
          :obj:`weight` of shape :math:`(N)`; or vectors :obj:`x` of shape :math:`(B, F)`
        - **output:** scores :math:`(B, L)`
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, num_inputs: int, num_labels: int, *, key: str = "evidence") -> None:
        super().__init__()
        self.key = key
        # Buffers: neither optimisers nor weight decay may touch them.
        self.register_buffer("weight", torch.zeros(num_inputs, num_labels))
        self.register_buffer("bias", torch.zeros(num_labels))

    def forward(self, data: Data) -> Tensor:
        known: Tensor | None = data.get(self.key)
        if known is not None:
            return known
        if data.x.is_floating_point():
            return torch.addmm(self.bias, data.x, self.weight)
        scores = nn.functional.embedding_bag(
            data.x.flatten(),
            self.weight,
            ptr_of(data)[:-1],
            mode="sum",
            per_sample_weights=data.get("weight"),
        )
        return scores + self.bias


class ScoreEncoder(nn.Module):
    r"""Turns a score of every label into a state of every label.

    .. math::
        \mathbf{e}_i = \mathbf{W} \, \sigma(\mathbf{a} s_i + \mathbf{c})

    The steps :math:`\sigma(a_k s + c_k)` begin where scores of a linear classifier lie.

    Args:
        channels (int): Size :math:`d` of a state.
        num_steps (int, optional): The number of steps. (default: :obj:`8`)

    Shapes:
        - **input:** scores :math:`(B, L)`
        - **output:** states :math:`(B, L, d)`
    """

    def __init__(self, channels: int, num_steps: int = 8) -> None:
        super().__init__()
        self.steps = nn.Linear(1, num_steps)
        self.lin = nn.Linear(num_steps, channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.lin.reset_parameters()
        places = torch.linspace(-1.5, 1.5, self.steps.out_features)
        with torch.no_grad():
            self.steps.weight.fill_(4.0)
            self.steps.bias.copy_(-4.0 * places)

    def forward(self, scores: Tensor) -> Tensor:
        states: Tensor = self.lin(torch.sigmoid(self.steps(scores.unsqueeze(-1))))
        return states
