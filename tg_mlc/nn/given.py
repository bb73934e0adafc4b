r"""Given labels: labels of a sample that are known before a model predicts the others.

The attribute :obj:`given` of a sample, :math:`(1, L)`, holds 0, 1, or NaN for unknown (see
:func:`tg_mlc.data.given_labels`). A model that takes given labels

- has a submodule with :obj:`takes_given_labels` set to :obj:`True`;
- reads given labels from a batch with :func:`given_in`, which may return :obj:`None`;
- uses given labels to predict the unknown labels.

Models with a state for every label add :class:`GivenLabels`. Other models use given labels as
components (see :class:`~tg_mlc.nn.encoders.GivenComponents`). Losses and metrics of
:class:`~tg_mlc.training.MultiLabelModule` ignore given labels.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data

from tg_mlc.ops.patterns import shape_error


class GivenLabels(nn.Module):
    r"""The state embedding from the `"General Multi-label Image Classification with Transformers"
    <https://arxiv.org/abs/2011.14027>`_ paper: one vector for present labels, one for
    absent labels.

    .. math::
        \mathbf{e}_i = \begin{cases} \mathbf{s}^{+} & \text{if } k_i = 1 \\ \mathbf{s}^{-} &
        \text{if } k_i = 0 \\
        \mathbf{0} & \text{if } k_i \text{ is unknown} \end{cases}

    Pass the output as :obj:`base_scores` to :class:`~tg_mlc.nn.LabelMessagePassing`, which adds it
    after labels have attended to components. (The paper adds it before. Our samples share queries.)

    Args:
        channels (int): Size :math:`d` of a label state.

    Shapes:
        - **input:** known labels :math:`(B, L)`: 0, 1, or NaN for unknown
        - **output:** states :math:`(B, L, d)`

    Raises:
        ValueError: If the known labels are not a matrix.
    """

    takes_given_labels = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(3, channels, padding_idx=0)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters of the module."""
        self.embedding.reset_parameters()

    def forward(self, given: Tensor) -> Tensor:
        """Embeds given labels."""
        if given.dim() != 2:
            cure = "; tg_mlc.data.given_labels makes it"
            raise shape_error("'given'", "[B, L], a row of all labels for each sample", given, cure)
        states: Tensor = self.embedding(given.nan_to_num(-1.0).long() + 1)
        return states


def takes_given_labels(model: nn.Module) -> bool:
    """Tells whether a model uses given labels in predictions."""
    return any(getattr(module, "takes_given_labels", False) for module in model.modules())


def given_in(model: nn.Module, data: Data) -> Tensor | None:
    """Returns given labels :math:`(B, L)` of a batch, if any. Raises if the model ignores them."""
    given: Tensor | None = data.get("given")
    if given is not None and not takes_given_labels(model):
        expected = f"samples without 'given', as {type(model).__name__} does not use given labels"
        cure = "leave it out, or build the model with given labels, as in LaMP(given_labels=True)"
        raise ValueError(f"Expected {expected} (got 'given'); {cure}")
    return given
