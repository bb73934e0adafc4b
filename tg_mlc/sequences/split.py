"""Split of events in the order of time, entity by entity."""

from __future__ import annotations

import numpy as np

from tg_mlc.data import Split
from tg_mlc.inputs import EventSequences

#: Shares of the events of each entity, as in the LANET paper.
TIME_FRACTIONS = (0.70, 0.17, 0.13)


def time_split(
    events: EventSequences,
    fractions: tuple[float, float, float] = TIME_FRACTIONS,
    *,
    min_history: int = 0,
    cross_borders: bool = True,
) -> Split:
    r"""Splits the events of every entity by time: the first ones train, the next validate, the last test.

    Event :math:`r` of the :math:`n` events of an entity, counted from zero, trains if :math:`r < 0.7 n`, and tests if
    :math:`r \geq 0.87 n`. A date is in one part alone, and an entity of fewer than eight events has no test event.

    The samples that the split divides are events as targets, of :class:`NextSetDataset`.

    Args:
        events (EventSequences): The events.
        fractions (tuple, optional): The shares of training, validation and test.
            (default: :obj:`(0.70, 0.17, 0.13)`, those of the LANET paper)
        min_history (int, optional): The number of earlier events that a target needs; others are in no part.
            (default: :obj:`0`)
        cross_borders (bool, optional): If set to :obj:`False`, only earlier events of the same part count for
            :obj:`min_history`. With :math:`\tau` of them no window of :math:`\tau` events crosses a border, which is
            the rule of the authors' code. (default: :obj:`True`)

    Raises:
        ValueError: If the fractions are not three numbers of at least zero that sum to 1.
    """
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"Expected 'fractions' to be three numbers that sum to 1: train, val, test (got {fractions})")
    lengths = events.ptr.diff().numpy()
    rank = np.arange(events.num_events) - np.repeat(events.ptr[:-1].numpy(), lengths)
    # Rounded up, as a share of 0.7 of ten events is seven of them, whatever the last bit of the product.
    borders = np.ceil(np.outer(np.cumsum((0.0, *fractions[:2])), lengths) - 1e-9).astype(np.int64)
    starts = np.repeat(borders, lengths, axis=1)
    part = (rank >= starts[1:]).sum(axis=0)
    history = rank if cross_borders else rank - np.take_along_axis(starts, part[None], axis=0)[0]
    name = f"by time, {'/'.join(f'{share:g}' for share in fractions)}"
    return Split.from_assignment(np.where(history >= min_history, part, -1), name)
