"""Explanation: why a model gave labels to samples, as plain arrays with names."""

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
from tg_mlc.inputs.preprocessor import as_tensors

KIND = "explanation"  #: of the folder


class Faithfulness(NamedTuple):
    """How far the order of a method's scores is that of what moves a probability.

    Components are removed in the order of their scores, or added in it to none at all; each area is that under the
    curve of the label's probability against the share of components, averaged over samples and labels.
    """

    deletion: float  #: area as components are removed; less is better
    insertion: float  #: area as components are added; more is better
    number: int = 0  #: of samples and labels that it is the mean of; 0 if it is not known

    @property
    def gain(self) -> float:
        """The area between both curves, about 0 for a random order; more is better."""
        return self.insertion - self.deletion


@dataclass(kw_only=True)
class SamplePrediction:
    """One sample, and what a model says of the asked labels :math:`L`."""

    name: str  #: what to call it
    #: its raw input, as plain data: the text, the row, the SMILES, ...; :obj:`None` if it came as numbers
    raw: Any
    #: names for people of the :math:`C` components, those of texts the words in order
    components: list[str]
    smiles: str | None = None  #: of a molecule
    #: ``[C]``, the atom that each component of a molecule is, -1 for none
    atoms: np.ndarray | None = None
    probability: np.ndarray  #: ``[L]``
    decision: np.ndarray  #: ``[L]``, whether the label is predicted
    truth: np.ndarray  #: ``[L]``, 1 or 0; NaN if unknown


@dataclass(kw_only=True)
class SampleExplanation(SamplePrediction):
    """Why a model gave labels to one sample, in arrays over the asked labels :math:`L`.

    An array that the model has nothing to say for is empty (no states, no attention), or NaN where a method does not
    apply to a component or a label.
    """

    states: np.ndarray  #: ``[S, L]``, the probabilities read out of the states 1.1, 1.2, ..., T.2
    #: by method, ``[C, L]``; signed but for attention and its rollout
    scores: dict[str, np.ndarray]
    attention: np.ndarray  #: ``[T, heads, C, L]``, what a label attends to in each step
    #: ``[J, L]``, by how much the messages of label j raise the logit of a label
    label_effects: np.ndarray
    #: ``[J, 2, L]``, by how much the logit rises if label j is given as absent, as present
    clamped: np.ndarray
    #: ``[T, heads, J, L]``, what a label attends to label j in each step
    label_attention: np.ndarray
    #: ``[L]`` each, what every part of the model adds to the logit, which is their sum
    parts: dict[str, np.ndarray]
    #: names of the :math:`K` bonds of a molecule, such as "C1=O3"
    bonds: list[str] = field(default_factory=list)
    bond_atoms: np.ndarray | None = None  #: ``[K, 2]``, their atoms
    #: By method, ``[K, L]``, the scores of bonds in the units of :attr:`scores`; of no method but occlusion.
    bond_scores: dict[str, np.ndarray] = field(default_factory=dict)
    given: np.ndarray | None = None  #: ``[L]``, 0 or 1 for labels that were given, else NaN

    def scored(self, method: str) -> tuple[list[str], np.ndarray]:
        """The names of all components, and of bonds where the method scores them, with their scores :math:`(C, L)`."""
        names, scores = self.components, self.scores[method]
        if method not in self.bond_scores:
            return names, scores
        return [*names, *self.bonds], np.concatenate([scores, self.bond_scores[method]])


@dataclass
class Explanation:
    """Why a model gave labels to samples: plain arrays and names, one entry of :attr:`samples` for each.

    .. code-block:: python

        explanation = tg_mlc.explain(tg_mlc.load("model"), ["CCO", "c1ccccc1"], labels=["nausea"])
        print(explanation.method, explanation.faithfulness[explanation.method].gain)
        print(explanation.to_frame())
    """

    labels: list[str]  #: the asked labels, over which all arrays go
    label_names: list[str]  #: all labels, over which :obj:`j` goes
    #: ``[L]``, the probability from which a label is predicted; NaN where label sets decide
    threshold: np.ndarray
    state_names: list[str]  #: ``["1.1", "1.2", ...]``; empty if the model passes no messages
    method: str  #: the chosen method
    #: by method, and that of a :obj:`"random"` order; empty if not measured
    faithfulness: dict[str, Faithfulness]
    samples: list[SampleExplanation]
    #: Facts about the model, its :obj:`"label_graph"` ``[2, E]`` among them; a report also shows metrics of asked
    #: labels, as :obj:`"per_label"` by their names, and :obj:`"reliability"`, the bins of an evaluation.
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """The methods that scored components."""
        return list(self.samples[0].scores)

    def label(self, name: str) -> int:
        """The place of a label among the asked ones; a :class:`ValueError` that names the nearest if it is none."""
        if name not in self.labels:
            raise ValueError(f"Expected an asked label (got {name!r}){nearest(name, self.labels)}")
        return self.labels.index(name)

    def to_frame(self, method: str | None = None) -> Any:
        """Returns a data frame with a row for each sample, label and component, and each bond where the method scores
        bonds: its score, and what the model said of the label.

        Args:
            method (str, optional): Another method than the chosen one. (default: :obj:`None`)

        Raises:
            ValueError: If no such method scored components.
            ImportError: If pandas is not installed (extra ``train``).
        """
        method = self.method if method is None else method
        if method not in self.methods:
            raise ValueError(f"Expected 'method' to be one of {self.methods} (got {method!r})")
        rows = [
            {
                "sample": sample.name,
                "label": label,
                "probability": sample.probability[place],
                "decision": sample.decision[place],
                "component": component,
                "score": score,
            }
            for sample in self.samples
            for names, scores in [sample.scored(method)]
            for place, label in enumerate(self.labels)
            for component, score in zip(names, scores[:, place], strict=True)
        ]
        return require("pandas", extra="train").DataFrame(rows)

    def plot(
        self,
        sample: int = 0,
        label: str | None = None,
        path: str | os.PathLike[str] | None = None,
        top: int = 12,
    ) -> Any:
        """Draws what raised and lowered a label: the components by the chosen method, and the other labels.

        Args:
            sample (int, optional): Which sample. (default: :obj:`0`)
            label (str, optional): Which label. (default: :obj:`None`, the most probable one)
            path (str or PathLike, optional): Where to save the figure. (default: :obj:`None`)
            top (int, optional): How many bars at most. (default: :obj:`12`)

        Raises:
            ValueError: If the label is none of the asked ones.
            ImportError: If matplotlib is not installed (extra ``plot``).
        """
        shown = self.samples[sample]
        place = int(shown.probability.argmax()) if label is None else self.label(label)
        bars = [
            (f"components ({self.method})", shown.components, shown.scores[self.method][:, place])
        ]
        if shown.label_effects.size:
            bars.append(("other labels", self.label_names, shown.label_effects[:, place]))
        figure = require("matplotlib.figure", extra="plot").Figure(
            figsize=(5 * len(bars), 4), layout="constrained"
        )
        axes = figure.subplots(1, len(bars), squeeze=False)
        for axis, (title, names, values) in zip(axes[0], bars, strict=True):
            order = np.argsort(-np.abs(np.nan_to_num(values)))[:top][::-1]
            signed = np.where(values[order] < 0, "tab:blue", "tab:orange")
            axis.barh(np.arange(len(order)), np.nan_to_num(values[order]), color=signed)
            axis.set_yticks(np.arange(len(order)), [str(names[i])[:30] for i in order])
            axis.set_title(title)
        figure.suptitle(f"{shown.name}: {self.labels[place]} ({shown.probability[place]:.2f})"[:80])
        if path is not None:
            figure.savefig(path)
        return figure

    def to_html(self, path: str | os.PathLike[str] | None = None, title: str | None = None) -> str:
        """Returns a page that shows all of it to people, and loads nothing: the samples shaded for the label that they
        choose, its probability after every state, and the labels that raised or lowered it.

        Args:
            path (str or PathLike, optional): Where to save the page. (default: :obj:`None`)
            title (str, optional): Its headline. (default: :obj:`None`)

        Raises:
            ValueError: If there is no sample.
            ImportError: If jinja2 is not installed (extra ``explain``), or, for molecules, RDKit (extra ``molecules``).
        """
        page: str = find("method", "report")(self, title)
        if path is not None:
            with replace_when_done(path) as unfinished:
                unfinished.write_text(page, encoding="utf-8")
        return page

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes a folder that :meth:`load` reads; one that is there already is replaced as a whole."""
        return write_folder(folder, {"kind": KIND, **as_tensors(asdict(self))})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Reads what :meth:`save` wrote; nothing in it is run.

        Raises:
            ValueError: If the folder is damaged, or holds something else.
        """
        content = {**read_folder(folder)}
        if content.pop("kind", None) != KIND:
            raise ValueError(
                f"Expected '{folder}' to hold an explanation (got something else); load it by tg_mlc.load"
            )
        content = as_arrays(content)
        content["samples"] = [SampleExplanation(**sample) for sample in content["samples"]]
        content["faithfulness"] = {
            name: Faithfulness(*areas) for name, areas in content["faithfulness"].items()
        }
        return cls(**content)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> SampleExplanation:
        return self.samples[index]

    def __iter__(self) -> Iterator[SampleExplanation]:
        return iter(self.samples)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples, {len(self.labels)} labels, method={self.method!r})"


def as_arrays(value: Any) -> Any:
    """Plain data with arrays in place of tensors."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, Mapping):
        return {key: as_arrays(item) for key, item in value.items()}
    return [as_arrays(item) for item in value] if isinstance(value, list) else value
