"""Preprocessor of events: vocabulary, bins and scales, fitted to training events alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from typing_extensions import Self

from tg_mlc._options import check_count
from tg_mlc.data import Split
from tg_mlc.inputs import Preprocessor
from tg_mlc.inputs.events import EventSequences
from tg_mlc.sequences.dataset import NextSetDataset, days_since_last


class EventPreprocessor(Preprocessor):
    """Makes samples of events, with labels, entities and bins of amounts of training events alone.

    Training events are those up to the last training target of an entity. Labels without a training
    event are left out of windows and of targets; :meth:`left_out` counts them. Entities without
    training events share one index.

    Args:
        window_size (int, optional): The number of events in a window; :obj:`None` for all.
            (default: :obj:`3`)
        num_bins (int, optional): The number of quantile bins of amounts; fewer where these repeat.
            (default: :obj:`10`)
    """

    def __init__(self, window_size: int | None = 3, num_bins: int = 10) -> None:
        check_count("window_size", window_size, or_none=True)
        check_count("num_bins", num_bins)
        self.window_size = window_size
        self.num_bins = num_bins
        self.label_names: list[str] = []
        self.entities: list[str] = []
        self.last_days: list[float] = []
        self.gaps: list[int] = [0]
        self.edges = np.empty(0)
        self.scale = np.empty(0)

    def fit(self, dataset: Any, split: Split) -> Self:
        """Learns from the training events of :class:`EventSequences`. Raises ValueError if the
        split does not fit the events or has no training target, or an event has no date.
        """
        events: EventSequences = dataset
        split.check_fits(events.num_events, "'dataset'")
        if split.train.numel() == 0:
            raise ValueError(f"Expected a split with training events (got {split})")
        if not events.time.isfinite().all():
            got = "(got those of 'with_next'); fit before adding the next"
            raise ValueError(f"Expected each event to have a date {got}")
        # The last training event of each entity, or -1 without one, ends its training events.
        entity_of = np.repeat(np.arange(events.num_entities), events.ptr.diff().numpy())
        last = np.full(events.num_entities, -1)
        # The split is ascending, so that the last event stays.
        last[entity_of[split.train.numpy()]] = split.train.numpy()
        in_training = np.arange(events.num_events) <= last[entity_of]
        entities = np.flatnonzero(last >= 0)
        amount = events.amount[in_training]
        labels = np.unique(amount.indices)
        self.label_names = [events.label_names[label] for label in labels]
        self.entities = [events.entities[entity] for entity in entities]
        self.last_days = events.time[last[entities]].tolist()
        # The last training events are in no training window.
        in_windows = in_training & ~np.isin(np.arange(events.num_events), last)
        days = days_since_last(events.ptr.numpy(), events.time.numpy())[in_windows]
        self.gaps = [int(gap) for gap in np.unique(np.append(0, days // 1))]
        known = ~np.isnan(amount.data)
        amounts, label = amount.data[known], amount.indices[known]
        # Edges are the least amounts of all bins but the first, so that no bin is empty.
        inner = np.linspace(0, 1, self.num_bins + 1)[1:-1]
        higher = np.quantile(amounts, inner, method="higher") if amounts.size else []
        edges = np.unique(higher)
        self.edges = np.asarray(edges[edges > amounts.min(initial=np.inf)])
        # The scale of a label is its mean absolute amount, or 1 if that is 0.
        counts = np.bincount(label, minlength=events.num_labels)
        mean = np.bincount(label, np.abs(amounts), events.num_labels) / np.maximum(counts, 1)
        self.scale = np.where(mean > 0, mean, 1.0)[labels]
        return self

    def transform(self, raw: Any) -> Any:
        """Makes a :class:`NextSetDataset` of :class:`EventSequences`, also of other entities."""
        if not self.label_names:
            raise RuntimeError("Expected 'fit' to be called before 'transform'")
        events: EventSequences = raw
        # Amounts of training labels; zeros stay stored.
        column = {name: i for i, name in enumerate(self.label_names)}
        new = np.array([column.get(name, -1) for name in events.label_names])[events.amount.indices]
        indptr = np.concatenate([[0], np.cumsum(new >= 0)])[events.amount.indptr]
        entries = events.amount.data[new >= 0], new[new >= 0], indptr
        amount = sp.csr_array(entries, shape=(events.num_events, len(column)))
        amount.sort_indices()
        missing = np.isnan(amount.data)
        scaled = np.arcsinh(np.nan_to_num(amount.data) / self.scale[amount.indices])
        bins = np.where(missing, 0, np.searchsorted(self.edges, amount.data, side="right") + 1)
        index_of = {name: i for i, name in enumerate(self.entities)}
        entity = np.array([index_of.get(name, len(index_of)) for name in events.entities])
        ptr, time = events.ptr.numpy(), events.time.numpy()
        until = np.append(self.last_days, -np.inf)[entity].repeat(np.diff(ptr))
        ones = np.ones(amount.nnz, np.float32)
        return NextSetDataset(
            ptr,
            time,
            sp.csr_array((ones, amount.indices, amount.indptr), amount.shape),
            scaled.astype(np.float32),
            bins,
            entity,
            time <= until,
            label_names=self.label_names,
            num_entities=len(self.entities),
            num_bins=len(self.edges) + 2,
            gaps=self.gaps,
            window_size=self.window_size,
        )

    def left_out(self, events: EventSequences) -> dict[str, int]:
        """Returns the labels that training does not have, with their numbers of events."""
        known = set(self.label_names)
        counts = np.bincount(events.y.indices, minlength=events.num_labels).tolist()
        labels = zip(events.label_names, counts, strict=True)
        return {name: count for name, count in labels if count and name not in known}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        arrays = {key: np.asarray(state[key]) for key in ("edges", "scale")}
        vars(self).update({**state, **arrays})
        return self
