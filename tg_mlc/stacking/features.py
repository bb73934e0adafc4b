"""Preprocessor that adds scores of classifiers. It is fitted before a model, and saved with it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from tqdm import tqdm
from typing_extensions import Self

from tg_mlc._names import find
from tg_mlc._options import check_number
from tg_mlc.data import ArrayDataset, MultiLabelDataset, Split
from tg_mlc.data.bags import with_attribute
from tg_mlc.data.samples import Samples
from tg_mlc.inputs import Preprocessor, kind_of
from tg_mlc.inputs.kind import View
from tg_mlc.inputs.kinds import views_of
from tg_mlc.stacking.classifiers import (
    AUTOMATIC,
    ClassifierSearch,
    SearchData,
    StackedClassifier,
    find_classifier,
)


class StackingFeatures(Preprocessor):
    """Adds scores :math:`(1, L, C)` of classifiers to samples as attribute :obj:`base_scores`.

    :meth:`fit_transform` gives training samples held-out scores. By default, classifiers choose
    their settings and the scale of their inputs by the sum of macro ROC-AUC, macro average
    precision and the best micro-F1 of held-out scores, on at most 1,500 samples. The best setting
    is fitted to as many samples as the time allows. LaMP gets vectors on the scale that most
    classifiers chose. A search with a view and a metric uses that view and that metric.

    Args:
        kinds (Sequence[str], optional): Names of :obj:`searches`. (default: :obj:`None`, all)
        searches (dict, optional): Each :class:`ClassifierSearch` by name. (default: the searches
            :obj:`"svm"`, :obj:`"logistic"`, :obj:`"ridge"` and :obj:`"forest"`)
        seconds (float, optional): The time for all searches, divided equally; the smallest fits may
            exceed it. (default: :obj:`120`)
        seed (int, optional): Seed of samples and folds. (default: :obj:`0`)

    Attributes:
        classifiers (dict[str, StackedClassifier]): The classifiers by name, after :meth:`fit`.

    Raises:
        ImportError: In :meth:`fit`, if scikit-learn is not installed (extra ``data``).
        ValueError: If a classifier is not known, or :obj:`seconds` is negative.
    """

    makes_base_scores = True
    classifiers: dict[str, StackedClassifier]
    views: dict[str, View]

    def __init__(
        self,
        kinds: Sequence[str] | None = None,
        searches: Mapping[str, ClassifierSearch] = AUTOMATIC,
        *,
        seconds: float = 120.0,
        seed: int = 0,
    ) -> None:
        if unknown := [name for name in kinds or () if name not in searches]:
            raise ValueError(f"Expected 'kinds' among {list(searches)} (got {unknown})")
        check_number("seconds", seconds)
        self.scalings = set[str]()
        self.searches = {name: searches[name] for name in (searches if kinds is None else kinds)}
        self.seconds, self.seed = seconds, seed

    def fit(self, dataset: MultiLabelDataset, split: Split) -> Self:
        """Fits the classifiers to training samples."""
        self.fit_transform(dataset, split)
        return self

    def fit_transform(self, dataset: MultiLabelDataset, split: Split) -> MultiLabelDataset:
        """Fits the classifiers, and gives training samples held-out scores."""
        end, train, y = time.monotonic() + self.seconds, dataset[split.train], dataset.y.numpy()
        names = [search.view for search in self.searches.values()]
        views = views_of(dataset) if None in names else {}
        views = {**views, **{name: find("view", name)() for name in names if name is not None}}
        self.views = {name: view.fit(train) for name, view in views.items()}
        matrices = {name: view.matrix(dataset) for name, view in self.views.items()}
        self.classifiers = {}
        searches = tqdm(self.searches.items(), "Classifiers", disable=None, leave=False)
        for index, (name, search) in enumerate(searches):
            seconds = max(0.0, end - time.monotonic()) / (len(self.searches) - index)
            by_view = matrices if search.view is None else {search.view: matrices[search.view]}
            samples = SearchData(by_view, y, split.train.numpy(), split.val.numpy())
            self.classifiers[name] = find_classifier(search, samples, seconds, self.seed)
        scores = [clf.held_out for clf in self.classifiers.values()]
        return self._samples(dataset, scores, matrices)

    @property
    def unknown(self) -> float:
        """The placeholder for unknown values: NaN, which all views of vectors support."""
        return math.nan

    def transform(self, raw: MultiLabelDataset) -> MultiLabelDataset:
        """Returns samples with the scores of all classifiers."""
        matrices, scores = dict[str, Any](), []
        for classifier in self.classifiers.values():
            view = classifier.view
            if view not in matrices:
                matrices[view] = self.views[view].matrix(raw)
            scores.append(classifier.scores(matrices[view]))
        return self._samples(raw, scores, matrices)

    def _samples(
        self, raw: MultiLabelDataset, scores: Sequence[Any], matrices: dict[str, Any]
    ) -> MultiLabelDataset:
        def matrix(view: str) -> Any:
            self.scalings.add(view)
            if view not in matrices:
                matrices[view] = self.views[view].matrix(raw)
            return matrices[view]

        scales = [clf.scale for clf in self.classifiers.values()]
        base_scores = torch.from_numpy(np.stack(scores, axis=-1) * scales).float()
        # Data sets that read samples from large files cannot replace attributes; copy to memory.
        if type(raw).get is not MultiLabelDataset.get:
            collated = Samples.collate(list(raw), raw.label_names, None)
            raw = ArrayDataset(collated._replace(kind=raw.kind, feature_names=raw.feature_names))
        samples = with_attribute(raw, "base_scores", base_scores)
        return kind_of(raw).on_scale(samples, self._most_chosen, matrix)

    def _most_chosen(self, names: Sequence[str]) -> str:
        """Returns the view that most classifiers chose, of some names if any has one of these,
        except forests, which do not depend on scale.
        """
        classifiers, own = self.classifiers.values(), [name for name in names if name in self.views]
        views = [clf.view for clf in classifiers if clf.baseline != "forest"]
        views = [view for view in views if view in own] or own or views or [*self.views]
        return max(dict.fromkeys(views), key=views.count)

    @property
    def scaling(self) -> str:
        """The view that most classifiers chose."""
        return self._most_chosen([*self.views])

    def state_dict(self) -> dict[str, Any]:
        """Returns the classifiers, their views, and the views on whose scale networks are."""
        names = {*self.scalings, *(clf.view for clf in self.classifiers.values())}
        views = {name: view.state_dict() for name, view in self.views.items() if name in names}
        classifiers = {name: clf.state_dict() for name, clf in self.classifiers.items()}
        return {"views": views, "classifiers": classifiers}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Loads classifiers and views from :meth:`state_dict`."""
        views, classifiers = state["views"].items(), state["classifiers"].items()
        # The name of a view that depends on the samples is not registered; its state has another.
        makers = {name: find("view", item.get("view", name)) for name, item in views}
        self.views = {name: makers[name]().load_state_dict(item) for name, item in views}
        self.scalings = {*self.views}
        self.classifiers = {name: StackedClassifier.from_state(item) for name, item in classifiers}
        if unknown := {item.view for item in self.classifiers.values()} - {*self.views}:
            expected = f"Expected the views of classifiers among {list(self.views)}"
            raise ValueError(f"{expected} (got {[*unknown]})")
        sizes = {name: len(item.classifier.classes_) for name, item in self.classifiers.items()}
        if len({*sizes.values()}) > 1:
            raise ValueError(f"Expected classifiers of the same labels (got numbers {sizes})")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(getattr(self, 'classifiers', self.searches))})"
