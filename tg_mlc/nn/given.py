r"""Given labels: what is known of a sample's labels before a model predicts the others.

A sample brings them along as its attribute :obj:`given`, :math:`(1, L)`: 0, 1, or NaN for unknown; see
:func:`tg_mlc.data.given_labels`. A model that takes them

- has a module, itself or one of its parts, whose attribute :obj:`takes_given_labels` is :obj:`True`;
- reads them from the batch with :func:`given_in`, and predicts without them where it returns :obj:`None`;
- lets them change its predictions of the unknown labels. Its predictions of the known ones count nowhere.

Models with a state for every label add :class:`GivenLabels`; all others take given labels as components (see
:class:`~tg_mlc.nn.encoders.GivenComponents`), and one that emits labels one after another never emits a given one.
:class:`~tg_mlc.training.MultiLabelModule` leaves given labels out of losses and metrics, and returns them unchanged.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.data import Data


class GivenLabels(nn.Module):
    r"""The state embedding from the `"General Multi-label Image Classification with Transformers"
    <https://arxiv.org/abs/2011.14027>`_ paper, one vector for labels known to apply, one for those known not to.

    .. math::
        \mathbf{e}_i = \begin{cases} \mathbf{s}^{+} & \text{if } k_i = 1 \\ \mathbf{s}^{-} & \text{if } k_i = 0 \\
        \mathbf{0} & \text{if } k_i \text{ is unknown} \end{cases}

    Give it as :obj:`base_scores` to :class:`~tg_mlc.nn.LabelMessagePassing`, which adds it after labels have attended
    to components, before they attend to each other. The paper adds it before both; all samples could then not share
    the queries of the first step, and a model would not learn sooner what a known label says of others.

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
        """Embeds what is known of every label."""
        if given.dim() != 2:
            raise ValueError(
                f"Expected 'given' of shape [B, L], a row of all labels for each sample (got {list(given.shape)}); "
                f"tg_mlc.data.given_labels makes it"
            )
        states: Tensor = self.embedding(given.nan_to_num(-1.0).long() + 1)
        return states


def takes_given_labels(model: nn.Module) -> bool:
    """Whether a model lets known labels change its predictions."""
    return any(getattr(part, "takes_given_labels", False) for part in model.modules())


def given_in(model: nn.Module, data: Data) -> Tensor | None:
    """Returns the known labels :math:`(B, L)` of a batch for a model, if there are any, which it has to take."""
    given: Tensor | None = data.get("given")
    if given is not None and not takes_given_labels(model):
        raise ValueError(
            f"Expected samples without known labels, as {type(model).__name__} does not take any (got 'given'); build "
            f"it so that it does, as in LaMP(given_labels=True), or leave out the attribute"
        )
    return given
