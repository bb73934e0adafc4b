"""Counts of inputs and probabilities, which show that inputs differ from those of the training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tg_mlc._optional import require
from tg_mlc.inference import Prediction

#: The largest number of labels, and of columns, with counts of their own, because a scrape has a
#: kilobyte for each. The others are counted together.
MAX_NAMES = 100
OTHERS = "(others)"  #: the name of all others together
#: The upper bounds of the bins of probabilities.
BOUNDS = tuple(bound / 10 for bound in range(1, 11))
_UPPER = np.array(BOUNDS[:-1])


class Drift:
    """Counts probabilities by label in bins, and unusual inputs by column: a collector of
    Prometheus.

    Labels that are given are not counted. The first labels of a model have bins of their own.

    Args:
        label_names (dict): The labels by the names of models.
    """

    def __init__(self, label_names: Mapping[str, Sequence[str]]) -> None:
        self._names, self._bins, self._sums = dict[str, list[str]](), {}, {}
        self._unusual = {model: Counter[tuple[str, str]]() for model in label_names}
        for model, labels in label_names.items():
            names = list(labels) if len(labels) <= MAX_NAMES else [*labels[:MAX_NAMES], OTHERS]
            self._names[model] = names
            self._bins[model] = np.zeros((len(names), len(BOUNDS)), dtype=np.int64)
            self._sums[model] = np.zeros(len(names))

    def count(
        self, model: str, predictions: Sequence[Prediction], unusual: Counter[tuple[str, str]]
    ) -> None:
        """Adds predictions, and what was :func:`unusual <tg_mlc._warnings.note>` in inputs."""
        bins, sums = self._bins[model], self._sums[model]
        for prediction in predictions:
            probabilities = prediction.probabilities
            is_counted = ~np.isnan(probabilities)
            if prediction.given is not None:
                is_counted &= np.isnan(prediction.given)
            values = probabilities[is_counted]
            label = np.minimum(np.nonzero(is_counted)[1], len(bins) - 1)
            place = label * len(BOUNDS) + np.searchsorted(_UPPER, values)
            bins += np.bincount(place, minlength=bins.size).reshape(bins.shape)
            sums += np.bincount(label, values, minlength=len(sums))
        counter = self._unusual[model]
        for (reason, column), number in unusual.items():
            is_listed = (reason, column) in counter or len(counter) < MAX_NAMES
            counter[reason, column if is_listed else OTHERS] += number

    def collect(self) -> Iterator[Any]:
        """Yields the metrics."""
        core = require("prometheus_client.core", extra="serve")
        name, text = "tg_mlc_probability", "Of labels that are not given."
        histogram = core.HistogramMetricFamily(name, text, labels=["model", "label"])
        bounds = [*map(str, BOUNDS[:-1]), "+Inf"]
        for model, labels in self._names.items():
            counts = self._bins[model].cumsum(axis=1).tolist()
            for label, numbers, total in zip(labels, counts, self._sums[model], strict=True):
                buckets = list(zip(bounds, numbers, strict=True))
                histogram.add_metric([model, label], buckets, float(total))
        yield histogram
        name, text = "tg_mlc_unusual_inputs", "Blanks, new categories, texts of unknown words."
        labels = ["model", "column", "reason"]
        counter = core.CounterMetricFamily(name, text, labels=labels)
        for model, counts in self._unusual.items():
            for (reason, column), number in sorted(counts.copy().items()):
                counter.add_metric([model, column, reason], number)
        yield counter
