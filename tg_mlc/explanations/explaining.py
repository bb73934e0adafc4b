"""The function explain: why a model gave labels to samples, by several methods at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._names import nearest, register
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.faithfulness import FRACTIONS, NUM_RANDOM, faithfulness
from tg_mlc.explanations.methods import METHODS, Chunk, NetworkView, split
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.explanations.question import Question

MAX_LABELS = 300  #: The default limit of labels in one explanation.
CHUNK = 16  #: The number of samples under a probe at a time.
PER_SAMPLE = 2  #: The number of labels of a sample by which faithfulness is measured.
MIN_CURVES = 10  #: The least number of curves by which it is measured, if there are as many.


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
    r"""Explains why a model gave labels to samples: scores of their components by several methods,
    each with its measured faithfulness; the readouts of intermediate states; and which other labels
    moved a label.

    - :obj:`"attention"`: what a label attends to, averaged over steps and heads.
    - :obj:`"integrated gradients"`: component states times gradients along the straight path from
      zero states, as in the `"Axiomatic Attribution for Deep Networks"
      <https://arxiv.org/abs/1703.01365>`_ paper. Points are added to the path until they sum to the
      difference of logits within 1 %. Where a GNN is pooled and read out linearly and :obj:`at`
      names its last layer, this is class activation.
    - :obj:`"alone"`: the rise of the logit where labels attend to the component and to no other.
    - :obj:`"occlusion"`: the fall of the logit where one component is masked: a word is left out, a
      column unknown, an atom without its bonds and, in fingerprints and descriptors, a dummy. Bonds
      of molecules are cut, in messages, fingerprints and descriptors.
    - :obj:`"group occlusion"`: the same for molecules, where all atoms of a ring or a functional
      group are masked at once.

    All but the last two look into a network. They are named :obj:`"... of LaMP"` where the logit of
    :func:`auto` also comes from base classifiers, and :obj:`"... of messages"` where something may
    bypass label messages. Occlusion always explains the whole model.

    Effects of other labels are exact: the change of a logit when the messages of one label are cut,
    or when one is given as absent or present.

    Args:
        model (Model or torch.nn.Module): A model, or a network of logits.
        raw (Any): Raw inputs as the model takes them, or samples.
        labels (Sequence[str], optional): The labels to explain. (default: :obj:`None`, all)
        method (str, optional): A method from the list above, or :obj:`"auto"` for all of them, of
            which the most faithful is chosen. (default: :obj:`"auto"`)
        y (Tensor or numpy.ndarray, optional): True labels :math:`(N, L)` of all labels.
            (default: :obj:`None`, those of samples)
        given (Any, optional): Known labels, as of :meth:`~tg_mlc.inference.Model.predict`.
            (default: :obj:`None`, the attribute :obj:`given` of samples)
        names (Sequence[str], optional): Names of samples. (default: :obj:`None`, by their inputs)
        label_names (Sequence[str], optional): The labels of a network.
            (default: :obj:`None`, those of its label graph)
        validation (Any, optional): Samples by which faithfulness is measured, without labels.
            (default: :obj:`None`, the explained ones)
        metric (str, optional): The metric of thresholds. (default: :obj:`"f1_micro"`)
        at (str, optional): The name of a module of a network that puts out the states of
            components, such as the last layer of a GNN.
            (default: :obj:`None`, what labels attend to)
        max_labels (int, optional): The largest number of labels. (default: :obj:`300`)

    Raises:
        ValueError: If a label or method is unknown, there are more labels than :obj:`max_labels`,
            a sample has no component, or the method does not apply to the model.
    """
    check_choice("method", method, ("auto", *METHODS))
    question = Question(model, raw, label_names, given, at, metric)
    if names is not None and len(names) != len(question.samples):
        number = len(question.samples)
        raise ValueError(f"Expected 'names' for each of {number} samples (got {len(names)})")
    asked = _checked_labels(question, labels, max_labels)
    columns = [question.label_names.index(label) for label in asked]
    methods = list(METHODS) if method == "auto" else [method]
    samples = _explain_samples(question, columns, methods)
    if not samples[0].scores:
        got = f"(got {method!r}); 'occlusion' applies to all models"
        raise ValueError(f"Expected a 'method' that applies to the model {got}")
    truth, flow = question.truth(y), question.answer
    assert flow.decisions is not None
    assert flow.thresholds is not None
    probability = flow.probabilities.double().numpy()[:, columns]
    decision = flow.decisions.numpy()[:, columns] == 1
    for row, sample in enumerate(samples):
        sample.probability, sample.decision = probability[row], decision[row]
        sample.truth = truth[row, columns]
        if names is not None:
            sample.name = str(names[row])
        if question.given is not None:
            sample.given = question.given.numpy()[row, columns]
    judge, judged = question, samples
    if validation is not None:
        judge = Question(model, validation, label_names, None, at, metric)
        judge.part = question.part
        judged = _explain_samples(judge, columns, methods)
    methods, per_sample = list(samples[0].scores), min(PER_SAMPLE, len(columns))
    num_hidden = 2 * len(FRACTIONS) * per_sample * (len(methods) + NUM_RANDOM)
    few = slice(max(-(-MIN_CURVES // per_sample), judge.max_hidden // num_hidden))
    areas = faithfulness(
        judge,
        judge.samples[few],
        [sample.scores for sample in judged[few]],
        columns,
        given=None if judge.given is None else judge.given[few],
        per_sample=per_sample,
    )
    return Explanation(
        labels=asked,
        label_names=list(question.label_names),
        threshold=np.array(flow.thresholds)[columns],
        state_names=question.probes[0].state_names if samples[0].states.size else [],
        method=max(methods, key=lambda name: areas[name].gain if name in areas else -np.inf),
        faithfulness=areas,
        samples=samples,
        facts=question.facts | {"metric": metric},
    )


register("method", explain)


def _checked_labels(
    question: Question, labels: Sequence[str] | str | None, max_labels: int
) -> list[str]:
    """The labels to explain; raises ValueError if one is unknown, or they are too many."""
    known = question.label_names
    asked = [labels] if isinstance(labels, str) else list(known if labels is None else labels)
    if not asked:
        raise ValueError("Expected 'labels' of the model (got none); leave them out to explain all")
    for label in asked:
        if label not in known:
            got = f"(got {label!r}){nearest(label, known)}"
            raise ValueError(f"Expected 'labels' of the model {got}")
    if len(asked) > max_labels:
        num_components = max(len(question.kind.components(sample)) for sample in question.samples)
        numbers_per_label = 4 * len(known) + (len(METHODS) + 8) * num_components
        gigabytes = 8 * len(question.samples) * len(asked) * numbers_per_label / 1e9
        got = f"(got {len(asked)}, whose explanation would take about {gigabytes:.1f} GB)"
        raise ValueError(
            f"Expected at most {max_labels} labels at once {got}; pass the ones of interest as "
            f"'labels', or a larger 'max_labels'"
        )
    return asked


def _explain_samples(
    question: Question, labels: list[int], methods: Sequence[str]
) -> list[SampleExplanation]:
    """The explanations of all samples, without probabilities."""
    explained: list[SampleExplanation] = []
    for start in range(0, len(question.samples), CHUNK):
        explained += _explain_chunk(question, start, labels, methods)
    return explained


def _explain_chunk(
    question: Question, start: int, labels: list[int], methods: Sequence[str]
) -> list[SampleExplanation]:
    """The explanations of a few samples, without probabilities."""
    samples = question.samples[start : start + CHUNK]
    given = None if question.given is None else question.given[start : start + CHUNK]
    chunk, kind = Chunk(question, samples, labels, given), question.kind
    weight = question.weight[labels]
    views = [_views(question, probe, samples, given, labels, methods) for probe in question.probes]
    parts, clamped = question.parts(samples, given), question.clamped(samples, given, labels)
    model_methods = {name: METHODS[name] for name in methods if not METHODS[name].is_of_network}
    model_scores = {name: method.score(chunk) for name, method in model_methods.items()}
    link_scores: dict[str, list[np.ndarray]] = {}
    if any(links.names for links in chunk.links):
        scorers = {name: method.score_links for name, method in model_methods.items()}
        link_scores = {name: score(chunk) for name, score in scorers.items() if score is not None}
    explained = []
    for index, sample in enumerate(samples):
        view = _mean([sample_views[index] for sample_views in views], len(labels))
        names = [*question.names(start + index), *view.beside]
        is_own = np.arange(len(names)) < len(names) - len(view.beside)
        scores = view.scores
        if question.part is not None:
            # A weight brings scores of a part to the units of the whole.
            part = question.part
            scores = {f"{name} of {part}": values * weight for name, values in scores.items()}
        for name, by_sample in model_scores.items():
            if by_sample is not None:
                scores[name] = np.full((len(names), len(labels)), np.nan)
                scores[name][is_own] = by_sample[index]
        smiles, links = kind.smiles(sample), chunk.links[index]
        bond_scores = {name: values[index] for name, values in link_scores.items()}
        unknown = np.empty(0)  # All samples are predicted together later.
        explained.append(
            SampleExplanation(
                name=question.name(start + index),
                raw=question.raw(start + index),
                components=names,
                smiles=smiles,
                atoms=None if smiles is None else np.where(is_own, np.arange(len(names)), -1),
                probability=unknown,
                decision=unknown,
                truth=unknown,
                states=view.states,
                scores=scores,
                attention=view.attention,
                label_effects=view.label_effects * weight,
                clamped=clamped[index],
                label_attention=view.label_attention,
                parts={name: values[index, labels] for name, values in parts.items()},
                bonds=links.names,
                bond_atoms=None if smiles is None else links.ends,
                bond_scores=bond_scores if links.names else {},
            )
        )
    return explained


class View(NamedTuple):
    """The explanation of a sample by one network, or by the mean of several networks, with arrays
    as in :class:`SampleExplanation`.
    """

    beside: list[str]  #: components beside those of the sample
    scores: dict[str, np.ndarray]
    states: np.ndarray
    attention: np.ndarray
    label_effects: np.ndarray
    label_attention: np.ndarray


def _mean(views: Sequence[View], num_labels: int) -> View:
    if not views:
        flat, deep = np.empty((0, num_labels)), np.empty((0, 0, 0, num_labels))
        return View([], {}, flat, deep, flat, deep)
    scores = {
        name: np.mean([view.scores[name] for view in views], axis=0) for name in views[0].scores
    }
    arrays = [np.mean(values, axis=0) for values in list(zip(*views, strict=True))[2:]]
    return View(views[0].beside, scores, *arrays)


def _views(
    question: Question,
    probe: NetworkProbe,
    samples: list[Data],
    given: Tensor | None,
    labels: list[int],
    methods: Sequence[str],
) -> list[View]:
    """The explanation of each sample by a network."""
    flow = question.prepare(samples)
    view = NetworkView(probe, question.batch_of(flow, given), labels)
    states = label_effects = np.zeros((len(samples), 0, len(labels)))
    label_attention = np.zeros((len(samples), 0, 0, 0, len(labels)))
    to_components = [np.zeros((0, 0, 0, len(labels)))] * len(samples)  # [rows, T, heads, L]
    if (attention := view.attention) is not None:
        to_components = split(attention.to_components[..., labels].movedim(2, 0), attention.ptr)
        states = attention.states.sigmoid()[..., labels].cpu().numpy()
        states = np.moveaxis(states, 1, 0)
        label_attention = attention.to_labels[..., labels].movedim(2, 0).cpu().numpy()
        label_effects = probe.label_effects(view.batch, labels).cpu().numpy()
    all_scores = {
        name: METHODS[name].score(view) for name in methods if METHODS[name].is_of_network
    }
    row_scores = {name: scores for name, scores in all_scores.items() if scores is not None}
    views = []
    for index, sample in enumerate(samples):
        num_rows = len(question.kind.components(sample))
        if row_scores:
            num_rows = len(next(iter(row_scores.values()))[index])
        fractions, beside = _fractions(question, probe, sample, flow.samples[index], num_rows)
        scores = {name: fractions @ values[index] for name, values in row_scores.items()}
        weights = np.moveaxis(to_components[index], 0, 2)
        reads_all = weights.shape[2] == fractions.shape[1] and probe.reads_components
        weights = fractions @ weights if reads_all else weights[:, :, :0]
        arrays = states[index], weights, label_effects[index], label_attention[index]
        views.append(View(beside, scores, *arrays))
    return views


def _fractions(
    question: Question, probe: NetworkProbe, sample: Data, prepared: Data, num_rows: int
) -> tuple[np.ndarray, list[str]]:
    """The fraction :math:`(C, N)` of each component in the rows of a network's states, and the
    names of components beside those of the sample.
    """
    fractions = question.kind.state_fractions(sample, prepared, probe.network, num_rows)
    if fractions is not None:
        return fractions, []
    number, beside = len(question.kind.components(sample)), probe.vectors_beside
    if number + sum(size for _, size in beside) != num_rows:
        beside = [("other inputs", num_rows - number)]
    if beside[0][1] < 0:
        raise ValueError(
            f"Expected component states for each of {number} components (got {num_rows}); the "
            f"network joins components, so explain it by method='occlusion'"
        )
    sizes = [1] * number + [size for _, size in beside]
    column = np.repeat(np.arange(len(sizes)), sizes)
    return (np.arange(len(sizes))[:, None] == column).astype(float), [name for name, _ in beside]
