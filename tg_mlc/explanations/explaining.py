"""The function :func:`explain`, which explains predicted labels by several methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.data import Data

from tg_mlc._names import nearest, register
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.methods import (
    METHODS,
    Chunk,
    NetworkView,
    faithfulness,
    num_measured,
    split,
)
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.explanations.question import Question
from tg_mlc.inputs.components import Section
from tg_mlc.inputs.schema import repeated

MAX_LABELS = 300  #: The default limit of labels in one explanation.
CHUNK = 16  #: The number of samples that are explained at a time.


def explain(
    model: Any,
    raw: Any,
    labels: Sequence[str] | None = None,
    method: str = "auto",
    *,
    y: Any = None,
    given: Any = None,
    names: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    validation: Any = None,
    metric: str = "f1_micro",
    at: str | None = None,
    max_labels: int = MAX_LABELS,
) -> Explanation:
    r"""Explains why a model predicts labels: by scores of components from several methods, each
    with a measured faithfulness; by predictions from intermediate states; and by effects of other
    labels, that is, how a logit changes if messages of one label are cut, or one label is given.

    - :obj:`"attention"`: the attention of a label to a component, averaged over steps and heads.
    - :obj:`"integrated gradients"` (`Sundararajan et al. 2017 <https://arxiv.org/abs/1703.01365>`_)
      of component states along a path from zero states, with so many points that scores sum to the
      difference of logits within 1 %; class activation if :obj:`at` is a pooled GNN's last layer.
    - :obj:`"alone"`: how far the logit rises if labels attend to this component instead of to none.
    - :obj:`"occlusion"`: how far the logit falls if a component is hidden (a word is removed, a
      column unknown, an atom replaced by a dummy without bonds, a node removed), or a bond of a
      molecule is cut. The node :obj:`seed_index` of a graph stays, and its features are zero.
    - :obj:`"group occlusion"`: how far the logit falls if a ring or functional group is hidden.

    Occlusion explains the whole model. Other methods explain only the network; their names end in
    :obj:`"of LaMP"` if base classifiers of :func:`auto` also add to the logit, and in
    :obj:`"of messages"` if a part of the logit may bypass label messages.

    Args:
        model (Model or torch.nn.Module): A model, or a network that returns logits.
        raw (Any): Raw inputs of the model, or samples.
        labels (Sequence[str], optional): The labels to explain. (default: :obj:`None`, all)
        method (str, optional): One of the methods above; :obj:`"auto"` tries all, and uses
            the most faithful. (default: :obj:`"auto"`)
        y (Any, optional): True labels :math:`(N, L)`. (default: :obj:`None`, :obj:`y` of samples)
        given (Any, optional): Known labels, as :meth:`~tg_mlc.inference.Model.predict` takes them.
            (default: :obj:`None`, the attribute :obj:`given` of samples)
        names (Sequence[str], optional): Names of samples. (default: :obj:`None`, their inputs)
        label_names (Sequence[str], optional): The names of a network's labels.
            (default: :obj:`None`, the names in its label graph)
        validation (Any, optional): Samples on which faithfulness is measured, without labels.
            (default: :obj:`None`, the explained samples)
        metric (str, optional): The metric that thresholds maximise. (default: :obj:`"f1_micro"`)
        at (str, optional): The module of a network that returns component states, such as the
            last layer of a GNN. (default: :obj:`None`, the states that labels attend to)
        max_labels (int, optional): The maximum number of labels. (default: :obj:`300`)

    Raises:
        ValueError: If a label or method is unknown, there are more labels than :obj:`max_labels`,
            a sample has no component, or the method does not apply to the model.
    """
    check_choice("method", method, ("auto", *METHODS))
    question = Question(model, raw, label_names, given, at, metric, y, names)
    columns = _columns(question, labels, max_labels)
    measured = question
    if validation is not None:
        measured = Question(model, validation, label_names, None, at, metric)
        measured.part = question.part
    return _explain(question, columns, list(METHODS) if method == "auto" else [method], measured)


register("method", explain)


def _columns(question: Question, labels: Sequence[str] | str | None, max_labels: int) -> list[int]:
    """Returns indices of labels to explain. Raises ValueError for unknown or too many labels."""
    all_names = question.label_names
    names = [labels] if isinstance(labels, str) else list(all_names if labels is None else labels)
    if not names:
        raise ValueError("Expected 'labels' of the model (got none); leave them out to explain all")
    for label in names:
        if label not in all_names:
            got = f"(got {label!r}){nearest(label, all_names)}"
            raise ValueError(f"Expected 'labels' of the model {got}")
    if duplicates := repeated(names):
        raise ValueError(f"Expected each of 'labels' once (got {duplicates[:5]} more than once)")
    if len(names) > max_labels:
        num_components = max(len(question.kind.components(sample)) for sample in question.samples)
        numbers_per_label = 4 * len(all_names) + (len(METHODS) + 8) * num_components
        gigabytes = 8 * len(question.samples) * len(names) * numbers_per_label / 1e9
        got = f"(got {len(names)}, whose explanation would take about {gigabytes:.1f} GB)"
        hint = "pass the labels of interest as 'labels', or a larger 'max_labels'"
        raise ValueError(f"Expected at most {max_labels} labels at once {got}; {hint}")
    return [all_names.index(label) for label in names]


def _explain(
    question: Question, columns: list[int], methods: list[str], measured: Question
) -> Explanation:
    """Explains samples of ``question``, and measures faithfulness on samples of ``measured``."""
    samples = _explain_samples(question, columns, methods)
    method_names = list(samples[0].scores)
    if not method_names:
        got = f"(got {methods[0]!r}); 'occlusion' applies to all models"
        raise ValueError(f"Expected a 'method' that applies to the model {got}")
    results = samples if measured is question else _explain_samples(measured, columns, methods)
    num_samples = num_measured(measured, len(method_names), len(columns))
    areas = faithfulness(measured, [sample.scores for sample in results[:num_samples]], columns)
    return Explanation(
        labels=[question.label_names[column] for column in columns],
        label_names=list(question.label_names),
        threshold=np.array(question.answer.thresholds)[columns],
        state_names=question.probes[0].state_names if samples[0].states.size else [],
        method=max(method_names, key=lambda name: areas[name].gain if name in areas else -np.inf),
        faithfulness=areas,
        samples=samples,
        facts=question.facts,
    )


def _explain_samples(
    question: Question, columns: list[int], methods: Sequence[str]
) -> list[SampleExplanation]:
    explained: list[SampleExplanation] = []
    for start in range(0, len(question.samples), CHUNK):
        explained += _explain_chunk(question, slice(start, start + CHUNK), columns, methods)
    return explained


def _explain_chunk(
    question: Question, rows: slice, columns: list[int], methods: Sequence[str]
) -> list[SampleExplanation]:
    """Returns explanations of a few samples."""
    samples, kind, weight = question.samples[rows], question.kind, question.weight[columns]
    given = None if question.given is None else question.given[rows]
    chunk = Chunk(question, samples, columns, given)
    views_by_network = [_views(chunk, probe, methods) for probe in question.probes]
    parts, clamped = question.parts(samples, given), question.clamped(samples, given, columns)
    model_methods = {name: METHODS[name] for name in methods if not METHODS[name].is_of_network}
    model_scores = {name: method.score(chunk) for name, method in model_methods.items()}
    link_scores: dict[str, list[np.ndarray]] = {}
    if any(links.names for links in chunk.links):
        scorers = {name: method.score_links for name, method in model_methods.items()}
        link_scores = {name: score(chunk) for name, score in scorers.items() if score is not None}
    explained = []
    for index, sample in enumerate(samples):
        row = rows.start + index
        view = _mean_view([views[index] for views in views_by_network], len(columns))
        components = [*question.names(row), *view.extra]
        is_own = np.arange(len(components)) < len(components) - len(view.extra)
        scores = view.scores
        if question.part is not None:
            # The weight converts scores of a part of the model to logits of the whole model.
            part = question.part
            scores = {f"{name} of {part}": values * weight for name, values in scores.items()}
        for name, values_by_sample in model_scores.items():
            if values_by_sample is not None:
                scores[name] = np.full((len(components), len(columns)), np.nan)
                scores[name][is_own] = values_by_sample[index]
        smiles, links = kind.smiles(sample), chunk.links[index]
        prediction = question.prediction(row, columns)
        sections = kind.sections(sample, prediction["raw"])
        bond_scores = {name: values[index] for name, values in link_scores.items()}
        explained.append(
            SampleExplanation(
                **prediction,
                components=components,
                smiles=smiles,
                atoms=None if smiles is None else _atoms(smiles, is_own, sections),
                states=view.states,
                scores=scores,
                attention=view.attention,
                label_effects=view.label_effects * weight,
                clamped=clamped[index],
                label_attention=view.label_attention,
                parts={name: values[index, columns] for name, values in parts.items()},
                bonds=links.names,
                bond_atoms=None if smiles is None else links.ends,
                bond_scores=bond_scores if links.names else {},
                sections=sections,
            )
        )
    return explained


def _atoms(smiles: str, is_own: np.ndarray, sections: Sequence[Section]) -> np.ndarray:
    """Returns the atom index of each component of the sample, -1 for components without an atom."""
    if not sections:
        return np.where(is_own, np.arange(len(is_own)), -1)
    section = next(section for section in sections if section.smiles == smiles)
    return section.atoms(len(is_own))


class View(NamedTuple):
    """The explanation of a sample by one network, or by the mean of several networks, with the
    arrays of :class:`SampleExplanation`.
    """

    extra: list[str]  #: names of components that a sample does not list
    scores: dict[str, np.ndarray]
    states: np.ndarray
    attention: np.ndarray
    label_effects: np.ndarray
    label_attention: np.ndarray


def _mean_view(views: Sequence[View], num_labels: int) -> View:
    if not views:
        empty_2d, empty_4d = np.empty((0, num_labels)), np.empty((0, 0, 0, num_labels))
        return View([], {}, empty_2d, empty_4d, empty_2d, empty_4d)
    scores = {
        name: np.mean([view.scores[name] for view in views], axis=0) for name in views[0].scores
    }
    arrays = [np.mean(values, axis=0) for values in list(zip(*views, strict=True))[2:]]
    return View(views[0].extra, scores, *arrays)


def _views(chunk: Chunk, probe: NetworkProbe, methods: Sequence[str]) -> list[View]:
    """Returns the explanation of each sample by a network."""
    question, labels, size = chunk.question, chunk.labels, len(chunk.samples)
    prepared = question.prepare(chunk.samples)
    view = NetworkView(probe, question.batch_of(prepared, chunk.given), labels)
    states = label_effects = np.zeros((size, 0, len(labels)))
    label_attention = np.zeros((size, 0, 0, 0, len(labels)))
    to_components = [np.zeros((0, 0, 0, len(labels)))] * size  # [rows, T, heads, L]
    if (attention := view.attention) is not None:
        to_components = split(attention.to_components[..., labels].movedim(2, 0), attention.ptr)
        states = attention.states.sigmoid()[..., labels].movedim(1, 0).cpu().numpy()
        label_attention = attention.to_labels[..., labels].movedim(2, 0).cpu().numpy()
        label_effects = probe.label_effects(view.batch, labels).cpu().numpy()
    row_scores = {}
    for name in methods:
        if METHODS[name].is_of_network and (scores := METHODS[name].score(view)) is not None:
            row_scores[name] = scores
    nodes = probe.nodes(view.batch)
    views = []
    for index, sample in enumerate(chunk.samples):
        num_rows = len(question.kind.components(sample))
        if row_scores:
            num_rows = len(next(iter(row_scores.values()))[index])
        row_nodes = None if nodes is None else nodes[index]
        rows = prepared.samples[index], num_rows, row_nodes
        fractions, extra = _fractions(question, probe, sample, *rows)
        weights = np.moveaxis(to_components[index], 0, 2)
        attends_to_all = weights.shape[2] == fractions.shape[1] and probe.reads_components
        weights = fractions @ weights if attends_to_all else weights[:, :, :0]
        scores_by_method = {name: fractions @ values[index] for name, values in row_scores.items()}
        arrays = states[index], weights, label_effects[index], label_attention[index]
        views.append(View(extra, scores_by_method, *arrays))
    return views


def _fractions(
    question: Question,
    probe: NetworkProbe,
    sample: Data,
    prepared: Data,
    num_rows: int,
    nodes: np.ndarray | None,
) -> tuple[np.ndarray, list[str]]:
    """Returns the fraction :math:`(C, N)` of each component in each row of a network's states, and
    the names of extra components that the sample does not list. ``nodes`` are the nodes of rows.
    """
    if nodes is not None:
        return (np.arange(sample.num_nodes)[:, None] == nodes).astype(float), []
    fractions = question.kind.state_fractions(sample, prepared, probe.network, num_rows)
    if fractions is not None:
        return fractions, []
    num_own, extra = len(question.kind.components(sample)), probe.extra_vectors
    if num_own + sum(size for _, size in extra) != num_rows:
        extra = [("other inputs", num_rows - num_own)]
    if extra[0][1] < 0:
        raise ValueError(
            f"Expected component states for each of {num_own} components (got {num_rows}); the "
            f"network joins components, so explain it by method='occlusion'"
        )
    sizes = [1] * num_own + [size for _, size in extra]
    component = np.repeat(np.arange(len(sizes)), sizes)
    return (np.arange(len(sizes))[:, None] == component).astype(float), [name for name, _ in extra]
