"""Start of embeddings from training documents: words from a latent semantic analysis, labels at document centres."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from tg_mlc.models.lamp import LaMP
from tg_mlc.nn import FeatureToLabelConv
from tg_mlc.nn.encoders import BagEncoder

if TYPE_CHECKING:
    import scipy.sparse as sp


@torch.no_grad()
def start_from_documents(model: LaMP, documents: sp.csr_array, y: Tensor) -> None:
    r"""Starts the words of a model as :meth:`~tg_mlc.nn.encoders.BagEncoder.start_from_documents` does, every label at
    what sets its documents apart, and keys as queries.

    .. math::
        \mathbf{W}^y_i = \sqrt{d} \, \frac{\mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}})}
        {\lVert \mathbf{E}^{\top} (\bar{\mathbf{x}}_i - \bar{\mathbf{x}}) \rVert}, \qquad
        \mathbf{W}^k = \mathbf{W}^q

    with the embeddings :math:`\mathbf{E}` of the words, the mean :math:`\bar{\mathbf{x}}_i` of the documents that have
    label :math:`i` and that of all documents. A label thus attends first to the words by which its documents differ,
    which a label of few documents would hardly find otherwise. Labels of no document, and all labels if the readout is
    tied to them, keep their start.
    """
    encoder = cast(BagEncoder, model.encoder)
    encoder.start_from_documents(documents)
    if model.readout.tied:
        return
    words = encoder.embedding.weight.cpu().numpy()
    positive = y.nan_to_num(0.0).cpu().numpy()
    present = positive.sum(axis=0) > 0
    shares = (positive / np.maximum(positive.sum(axis=0), 1)).T[present]
    centres = np.asarray(shares @ documents) @ words - np.asarray(documents.mean(axis=0)).ravel() @ words
    states = nn.functional.normalize(torch.from_numpy(centres)) * encoder.channels**0.5
    labels = model.labels.embedding.weight
    labels[torch.from_numpy(present)] = states.to(labels)
    for conv in cast("Iterable[FeatureToLabelConv]", model.labels.feature_to_label):
        conv.lin_key.weight.copy_(conv.lin_query.weight)
