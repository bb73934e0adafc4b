"""The Explanation class: explanations of predictions as plain arrays with names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from typing_extensions import Self

from tg_mlc._files import replace_when_done
from tg_mlc._names import find, nearest
from tg_mlc._optional import require
from tg_mlc.inference.folder import read_folder, write_folder
from tg_mlc.inputs.components import Section
from tg_mlc.inputs.preprocessor import as_tensors

KIND = "explanation"  #: The entry "kind" of a saved folder.


class Faithfulness(NamedTuple):
    """How well a method ranks components by their effect on a probability.

    Components are removed in descending order of their scores, or added in this order. Each area is
    the area under the curve of the label's probability over the fraction of components, averaged
    over samples and labels.
    """

    deletion: float  #: area while components are removed; lower is better
    insertion: float  #: area while components are added; higher is better
    number: int = 0  #: the number of averaged curves; 0 if unknown

    @property
    def gain(self) -> float:
        """The area between both curves, about 0 for a random order; higher is better."""
        return self.insertion - self.deletion


@dataclass(kw_only=True)
class SamplePrediction:
    """One sample with its predictions for the :math:`L` explained labels."""

    name: str  #: a short readable name
    #: the raw input as plain data (text, row or SMILES); :obj:`None` if the input is numbers
    raw: Any
    #: readable names of the :math:`C` components; for texts, the words in order
    components: list[str]
    #: the molecule, if the sample is one; the first one, if it has parts
    smiles: str | None = None
    #: ``[C]``, the atom index of each component of a molecule; -1 for components without an atom
    atoms: np.ndarray | None = None
    probability: np.ndarray  #: ``[L]``
    decision: np.ndarray  #: ``[L]``, whether the label is predicted
    truth: np.ndarray  #: ``[L]``, 1 or 0; NaN if unknown


@dataclass(kw_only=True)
class SampleExplanation(SamplePrediction):
    """The explanation of one sample, in arrays over the :math:`L` explained labels.

    An array is empty if the model lacks its content (such as states or attention), and NaN where a
    method does not apply to a component or label.
    """

    states: np.ndarray  #: ``[S, L]``, the probabilities predicted from the states 1.1, ..., T.2
    #: the scores of components ``[C, L]`` by method; only scores of attention have no sign
    scores: dict[str, np.ndarray]
    attention: np.ndarray  #: ``[T, heads, C, L]``, attention to components in each step
    #: ``[J, L]``, how far messages from label j raise the logit of a label
    label_effects: np.ndarray
    #: ``[J, 2, L]``, how far the logit rises if label j is given as absent (0) or present (1)
    clamped: np.ndarray
    #: ``[T, heads, J, L]``, the attention of a label to label j in each step
    label_attention: np.ndarray
    #: the terms ``[L]`` of the logit by part of the model; the logit is the sum of all terms
    parts: dict[str, np.ndarray]
    #: names of the :math:`K` bonds of a molecule, such as "C1=O3"
    bonds: list[str] = field(default_factory=list)
    bond_atoms: np.ndarray | None = None  #: ``[K, 2]``, the components of each bond
    #: the scores of bonds ``[K, L]`` by method, in the units of :attr:`scores`
    bond_scores: dict[str, np.ndarray] = field(default_factory=dict)
    given: np.ndarray | None = None  #: ``[L]``, 0 or 1 for given labels, else NaN
    #: the components by part, such as a text and a molecule; empty if the input has no parts
    sections: list[Section] = field(default_factory=list)

    def shares(self, method: str) -> dict[str, np.ndarray]:
        """Returns the fraction :math:`(L)` of each part in the absolute scores of components, by
        the name of the part; NaN if all scores are zero.

        Args:
            method (str): The method that scored components.
        """
        sizes = {section.name: self.scores[method][section.rows] for section in self.sections}
        sums = {name: np.abs(scores).sum(axis=0) for name, scores in sizes.items()}
        total = np.sum([*sums.values()], axis=0)
        total = np.where(total > 0, total, np.nan)
        return {name: values / total for name, values in sums.items()}

    def scored(self, method: str) -> tuple[list[str], np.ndarray]:
        """Returns names and scores :math:`(C, L)` of components, followed by scored bonds."""
        names, scores = self.components, self.scores[method]
        if method not in self.bond_scores:
            return names, scores
        return [*names, *self.bonds], np.concatenate([scores, self.bond_scores[method]])


@dataclass
class Explanation:
    """Explanations of a model's predictions as plain arrays and names. :attr:`samples` holds one
    entry per sample.

    .. code-block:: python

        explanation = tg_mlc.explain(tg_mlc.load("model"), ["CCO", "c1ccccc1"], labels=["nausea"])
        print(explanation.method, explanation.faithfulness[explanation.method].gain)
        print(explanation.to_frame())
    """

    labels: list[str]  #: the :math:`L` explained labels
    label_names: list[str]  #: all :math:`J` labels of the model
    #: ``[L]``, the thresholds of probabilities; NaN if decisions do not use thresholds
    threshold: np.ndarray
    state_names: list[str]  #: ``["1.1", "1.2", ...]``; empty if the model passes no messages
    method: str  #: the chosen method
    #: the faithfulness by method, including a :obj:`"random"` order; empty if not measured
    faithfulness: dict[str, Faithfulness]
    samples: list[SampleExplanation]
    #: Facts about the model, such as its :obj:`"label_graph"` ``[2, E]``. A report also shows
    #: :obj:`"per_label"`, metrics of labels by name, and :obj:`"reliability"`, calibration bins.
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """The names of the methods that scored components."""
        return list(self.samples[0].scores)

    def label(self, name: str) -> int:
        """Returns the index of an explained label. Raises ValueError for other labels."""
        if name not in self.labels:
            got = f"(got {name!r}){nearest(name, self.labels)}"
            raise ValueError(f"Expected 'label' to be one of the explained labels {got}")
        return self.labels.index(name)

    def to_frame(self, method: str | None = None) -> Any:
        """Returns a data frame of scores with the predictions of labels. It has a row for each
        sample, label and component, and for each bond if the method scores bonds.

        Args:
            method (str, optional): The method. (default: :obj:`None`, the chosen one)

        Raises:
            ValueError: If the method did not score components.
            ImportError: If pandas is not installed (extra ``train``).
        """
        method = self.method if method is None else method
        if method not in self.methods:
            raise ValueError(f"Expected 'method' to be one of {self.methods} (got {method!r})")
        rows = [
            {
                "sample": sample.name,
                "label": label,
                "probability": sample.probability[column],
                "decision": sample.decision[column],
                "component": component,
                "score": score,
            }
            for sample in self.samples
            for names, scores in [sample.scored(method)]
            for column, label in enumerate(self.labels)
            for component, score in zip(names, scores[:, column], strict=True)
        ]
        return require("pandas", extra="train").DataFrame(rows)

    def plot(
        self,
        sample: int = 0,
        label: str | None = None,
        path: str | os.PathLike[str] | None = None,
        top: int = 12,
    ) -> Any:
        """Draws how components (by the chosen method) and other labels raise or lower a label.

        Args:
            sample (int, optional): The index of the sample. (default: :obj:`0`)
            label (str, optional): The label. (default: :obj:`None`, the most probable one)
            path (str or PathLike, optional): Where to save the figure. (default: :obj:`None`)
            top (int, optional): The maximum number of bars. (default: :obj:`12`)

        Raises:
            ValueError: If the label is not one of the explained labels.
            ImportError: If matplotlib is not installed (extra ``plot``).
        """
        entry = self.samples[sample]
        column = int(entry.probability.argmax()) if label is None else self.label(label)
        scores = entry.scores[self.method][:, column]
        panels = [(f"components ({self.method})", entry.components, scores)]
        if entry.label_effects.size:
            panels.append(("other labels", self.label_names, entry.label_effects[:, column]))
        matplotlib = require("matplotlib.figure", extra="plot")
        figure = matplotlib.Figure(figsize=(5 * len(panels), 4), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, (title, names, raw_values) in zip(axes, panels, strict=True):
            values = np.nan_to_num(raw_values)
            order = np.argsort(-np.abs(values))[:top][::-1]
            colours = np.where(values[order] < 0, "tab:blue", "tab:orange")
            axis.barh(np.arange(len(order)), values[order], color=colours)
            axis.set_yticks(np.arange(len(order)), [str(names[i])[:30] for i in order])
            axis.set_title(title)
        title = f"{entry.name}: {self.labels[column]} ({entry.probability[column]:.2f})"
        figure.suptitle(title[:80])
        if path is not None:
            figure.savefig(path)
        return figure

    def to_html(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> str:
        """Returns an HTML page without external resources. It shows samples shaded by their scores
        for a selected label, its probability after every state, and the effects of other labels.

        Args:
            path (str or PathLike, optional): Where to save the page. (default: :obj:`None`)
            title (str, optional): The headline. (default: :obj:`None`)

        Raises:
            ValueError: If the explanation has no samples.
            ImportError: If jinja2 is not installed (extra ``explain``), or, for molecules, RDKit
                (extra ``molecules``).
        """
        page: str = find("method", "report")(self, title)
        if path is not None:
            with replace_when_done(path) as unfinished:
                unfinished.write_text(page, encoding="utf-8")
        return page

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes a folder that :meth:`load` reads; an earlier folder is replaced as a whole."""
        return write_folder(folder, {"kind": KIND, **as_tensors(asdict(self))})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Reads a folder that :meth:`save` wrote, without running any code in it.

        Raises:
            ValueError: If the folder is damaged, or holds no explanation.
        """
        content = {**read_folder(folder)}
        if content.pop("kind", None) != KIND:
            hint = "(got something else); load models by tg_mlc.load"
            raise ValueError(f"Expected '{folder}' to hold an explanation {hint}")
        content = as_arrays(content)
        content["samples"] = [SampleExplanation(**sample) for sample in content["samples"]]
        for sample in content["samples"]:
            sample.sections = [Section(*values) for values in sample.sections]
        areas = content["faithfulness"].items()
        content["faithfulness"] = {name: Faithfulness(*values) for name, values in areas}
        return cls(**content)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> SampleExplanation:
        return self.samples[index]

    def __iter__(self) -> Iterator[SampleExplanation]:
        return iter(self.samples)

    def __repr__(self) -> str:
        sizes = f"{len(self)} samples, {len(self.labels)} labels"
        return f"{type(self).__name__}({sizes}, method={self.method!r})"


def as_arrays(value: Any) -> Any:
    """Returns plain data with arrays in place of tensors."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, Mapping):
        return {key: as_arrays(item) for key, item in value.items()}
    return [as_arrays(item) for item in value] if isinstance(value, list) else value
