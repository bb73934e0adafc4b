"""explain: why a model gave labels to samples, by several methods at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._names import nearest, register
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.faithfulness import NUM_RANDOM, SHARES, faithfulness
from tg_mlc.explanations.methods import METHODS, Chunk, NetworkView, split
from tg_mlc.explanations.network import NetworkProbe
from tg_mlc.explanations.question import Question

MAX_LABELS = 300  #: that are asked at once
CHUNK = 16  #: samples under a probe at a time
PER_SAMPLE = 2  #: labels of a sample by which faithfulness is measured
MIN_CURVES = 10  #: by which it is measured, if there are as many samples and labels


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
    r"""Explains why a model gave labels to samples: scores of their components by several methods, each with its
    measured faithfulness; the readouts of intermediate states; and which other labels moved a label.

    - :obj:`"attention"`: what a label attends to, on average over steps and heads.
    - :obj:`"rollout"`: attention followed through all steps and other labels, with half a weight on what a label has.
    - :obj:`"gradient"`: component states times gradients; of a GNN that is pooled and read out linearly, with
      :obj:`at` its last layer, this is class activation. Label states pass a normalisation and an MLP after their
      messages, so that components have no exact shares of what is read out of them; see :obj:`"alone"`.
    - :obj:`"integrated gradients"`: the same along the straight path from zero states, as the `"Axiomatic Attribution
      for Deep Networks" <https://arxiv.org/abs/1703.01365>`_ paper; they sum to the difference of logits within 1 %;
      more points of the path are taken until they do, or a warning says that they do not. They are those of captum,
      which explains one label at a time with a fixed number of points; here, a pass takes the gradients of all asked
      labels.
    - :obj:`"alone"`: by how much the logit rises where labels attend to the component and to no other.
    - :obj:`"shapley"`: by how much it rises on average as components are added in random orders, estimated by a few;
      these sum to the difference of logits. One pass gives all labels, as of :obj:`"alone"`.
    - :obj:`"occlusion"`: by how much the logit falls where one component is masked: a word left out, a column unknown,
      an atom without its bonds and, in fingerprints and descriptors, a dummy. It scores the bonds of molecules, too: by
      how much the logit falls where the messages along one are cut, both ways, and the bond in fingerprints and
      descriptors. For bonds by gradients, :class:`OneLabel` hands a label to PyG's explainers, which mask edges.
    - :obj:`"group occlusion"`: the same for molecules, where all atoms of a ring or a functional group are masked at
      once.

    All but the last two look into a network. They are named :obj:`"... of LaMP"` where the model is one of
    :func:`auto`, whose logit also comes from base classifiers, and :obj:`"... of messages"` where something bypasses
    label messages, such as base scores or a linear path, or it cannot be told. Occlusion is of the whole model always.
    Base classifiers have no scores of their own: molecules' fingerprints and descriptors, which they read, come from
    several atoms each.

    Which labels moved another is exact, without attention: the change of its logit when the messages of one label are
    cut, or when one is given as absent or present.

    Args:
        model (Model or torch.nn.Module): A model, or a network of logits.
        raw (Any): Raw inputs as the model takes them, or samples.
        labels (Sequence[str], optional): The labels to explain. (default: :obj:`None`, all)
        method (str, optional): One of the above, or :obj:`"auto"` for all of them, of which the most faithful is
            chosen. (default: :obj:`"auto"`)
        y (Tensor or numpy.ndarray, optional): True labels :math:`(N, L)` of all labels. (default: :obj:`None`, those of
            samples)
        given (Any, optional): Labels that are known already, as :meth:`~tg_mlc.inference.Model.predict` takes them.
            (default: :obj:`None`, those that samples carry as :obj:`given`)
        names (Sequence[str], optional): The names of the samples. (default: :obj:`None`, by their inputs)
        label_names (Sequence[str], optional): The labels of a network. (default: :obj:`None`, those of its label graph)
        validation (Any, optional): Samples by which faithfulness is measured, which needs no labels.
            (default: :obj:`None`, the explained ones)
        metric (str, optional): The metric that thresholds are best for. (default: :obj:`"f1_micro"`)
        at (str, optional): The name of a module of a network whose output are the states of components, *e.g.* the last
            layer of a GNN. (default: :obj:`None`, what labels attend to)
        max_labels (int, optional): The most labels that may be asked. (default: :obj:`300`)

    Raises:
        ValueError: If a label or method is unknown, more labels are asked than :obj:`max_labels`, a sample has no
            component, or the method does not apply to the model.
    """
    check_choice("method", method, ("auto", *METHODS))
    question = Question(model, raw, label_names, given, at, metric)
    if names is not None and len(names) != len(question.samples):
        raise ValueError(
            f"Expected 'names' for each of {len(question.samples)} samples (got {len(names)})"
        )
    asked = _asked_labels(question, labels, max_labels)
    places = [question.label_names.index(label) for label in asked]
    wanted = list(METHODS) if method == "auto" else [method]
    samples = _explained(question, places, wanted)
    if not samples[0].scores:
        raise ValueError(
            f"Expected a 'method' that applies to the model (got {method!r}); 'occlusion' applies to all"
        )
    truth, answer = question.truth(y), question.answer
    probability = answer.probabilities.double().numpy()[:, places]
    assert answer.decisions is not None
    assert answer.thresholds is not None
    decision = answer.decisions.numpy()[:, places] == 1
    for row, sample in enumerate(samples):
        sample.probability, sample.decision = probability[row], decision[row]
        sample.truth, sample.name = (
            truth[row, places],
            sample.name if names is None else str(names[row]),
        )
        sample.given = None if question.given is None else question.given.numpy()[row, places]
    measured_by, scored = question, samples
    if validation is not None:
        measured_by = Question(model, validation, label_names, None, at, metric)
        measured_by.part = question.part
        scored = _explained(measured_by, places, wanted)
    methods, per_sample = list(samples[0].scores), min(PER_SAMPLE, len(places))
    # samples with hidden components
    of_sample = 2 * len(SHARES) * per_sample * (len(methods) + NUM_RANDOM)
    few = slice(max(-(-MIN_CURVES // per_sample), measured_by.max_hidden // of_sample))
    scores = [sample.scores for sample in scored[few]]
    known = None if measured_by.given is None else measured_by.given[few]
    measured = faithfulness(
        measured_by, measured_by.samples[few], scores, places, given=known, per_sample=per_sample
    )
    return Explanation(
        labels=asked,
        label_names=list(question.label_names),
        threshold=np.array(answer.thresholds)[places],
        state_names=question.probes[0].state_names if samples[0].states.size else [],
        method=max(methods, key=lambda each: measured[each].gain if each in measured else -np.inf),
        faithfulness=measured,
        samples=samples,
        facts=question.facts | {"metric": metric},
    )


register("method", explain)


def _asked_labels(
    question: Question, labels: Sequence[str] | str | None, max_labels: int
) -> list[str]:
    """The labels to explain; a :class:`ValueError` if one is unknown, or they are too many."""
    known = question.label_names
    asked = list(known) if labels is None else [labels] if isinstance(labels, str) else list(labels)
    if not asked:
        raise ValueError("Expected 'labels' of the model (got none); leave them out to explain all")
    for label in asked:
        if label not in known:
            raise ValueError(
                f"Expected 'labels' of the model (got {label!r}){nearest(label, known)}"
            )
    if len(asked) > max_labels:
        num_components = max(len(question.kind.components(sample)) for sample in question.samples)
        of_label = 4 * len(known) + (len(METHODS) + 8) * num_components
        gigabytes = 8 * len(question.samples) * len(asked) * of_label / 1e9
        raise ValueError(
            f"Expected at most {max_labels} labels at once (got {len(asked)}, whose explanation would take about "
            f"{gigabytes:.1f} GB); pass the ones of interest as 'labels', or a larger 'max_labels'"
        )
    return asked


def _explained(
    question: Question, labels: list[int], wanted: Sequence[str]
) -> list[SampleExplanation]:
    """All samples of a question, without probabilities."""
    explained: list[SampleExplanation] = []
    for start in range(0, len(question.samples), CHUNK):
        explained += _of_chunk(question, start, labels, wanted)
    return explained


def _of_chunk(
    question: Question, start: int, labels: list[int], wanted: Sequence[str]
) -> list[SampleExplanation]:
    """A few samples of a question, without probabilities."""
    samples = question.samples[start : start + CHUNK]
    given = None if question.given is None else question.given[start : start + CHUNK]
    chunk, kind, weight = (
        Chunk(question, samples, labels, given),
        question.kind,
        question.weight[labels],
    )
    views = [_views(question, probe, samples, given, labels, wanted) for probe in question.probes]
    parts, clamped = question.parts(samples, given), question.clamped(samples, given, labels)
    of_model = {name: METHODS[name] for name in wanted if not METHODS[name].is_of_network}
    tried = {name: method.score(chunk) for name, method in of_model.items()}
    of_whole = {name: scores for name, scores in tried.items() if scores is not None}
    of_links: dict[str, list[np.ndarray]] = {}
    if any(links.names for links in chunk.links):
        scorers = {name: method.score_links for name, method in of_model.items()}
        of_links = {name: score(chunk) for name, score in scorers.items() if score is not None}
    explained = []
    for place, sample in enumerate(samples):
        view = _mean([each[place] for each in views], len(labels))
        names = [*question.names(start + place), *view.beside]
        scores, is_own = view.scores, np.arange(len(names)) < len(names) - len(view.beside)
        if question.part is not None:
            # A weight brings scores of a part to the units of the whole.
            scores = {
                f"{name} of {question.part}": values * weight for name, values in scores.items()
            }
        for name, values in of_whole.items():
            scores[name] = np.full((len(names), len(labels)), np.nan)
            scores[name][is_own] = values[place]
        smiles, links = kind.smiles(sample), chunk.links[place]
        nothing = np.empty(0)  # until all samples are predicted together
        explained.append(
            SampleExplanation(
                name=question.name(start + place),
                raw=question.raw(start + place),
                components=names,
                smiles=smiles,
                atoms=None if smiles is None else np.where(is_own, np.arange(len(names)), -1),
                probability=nothing,
                decision=nothing,
                truth=nothing,
                states=view.states,
                scores=scores,
                attention=view.attention,
                label_effects=view.label_effects * weight,
                clamped=clamped[place],
                label_attention=view.label_attention,
                parts={name: values[place, labels] for name, values in parts.items()},
                bonds=links.names,
                bond_atoms=None if smiles is None else links.ends,
                bond_scores={name: values[place] for name, values in of_links.items()}
                if links.names
                else {},
            )
        )
    return explained


class View(NamedTuple):
    """The explanation of a sample by one network, or by the mean of several, as in :class:`SampleExplanation`."""

    beside: list[str]  #: components beside those of the sample
    scores: dict[str, np.ndarray]
    states: np.ndarray
    attention: np.ndarray
    label_effects: np.ndarray
    label_attention: np.ndarray


def _mean(views: Sequence[View], num_asked: int) -> View:
    if not views:
        none = np.empty((0, num_asked))
        return View(
            [], {}, none, np.empty((0, 0, 0, num_asked)), none, np.empty((0, 0, 0, num_asked))
        )
    scores = {
        name: np.mean([view.scores[name] for view in views], axis=0) for name in views[0].scores
    }
    arrays = [np.mean(each, axis=0) for each in list(zip(*views, strict=True))[2:]]
    return View(views[0].beside, scores, *arrays)


def _views(
    question: Question,
    probe: NetworkProbe,
    samples: list[Data],
    given: Tensor | None,
    labels: list[int],
    wanted: Sequence[str],
) -> list[View]:
    """The explanation of each sample by a network."""
    flow = question.prepare(samples)
    view = NetworkView(probe, question.batch_of(flow, given), labels)
    none = np.zeros((len(samples), 0, len(labels)))
    states = label_effects = none
    label_attention = np.zeros((len(samples), 0, 0, 0, len(labels)))
    to_components = [np.zeros((0, 0, 0, len(labels)))] * len(samples)  # [rows, T, heads, L]
    if (attention := view.attention) is not None:
        to_components = split(attention.to_components[..., labels].movedim(2, 0), attention.ptr)
        states = attention.states.sigmoid()[..., labels].cpu().numpy()
        states = states.swapaxes(0, 1) if probe.state_names else none
        label_attention = attention.to_labels[..., labels].movedim(2, 0).cpu().numpy()
        label_effects = probe.label_effects(view.batch, labels).cpu().numpy()
    tried = {name: METHODS[name].score(view) for name in wanted if METHODS[name].is_of_network}
    of_rows = {name: scores for name, scores in tried.items() if scores is not None}
    views = []
    for row, sample in enumerate(samples):
        number = len(question.kind.components(sample))
        num_rows = len(next(iter(of_rows.values()))[row]) if of_rows else number
        fractions, beside = _fractions(question, probe, sample, flow.samples[row], num_rows)
        scores = {name: fractions @ values[row] for name, values in of_rows.items()}
        own = np.moveaxis(to_components[row], 0, 2)
        reads_all = own.shape[2] == fractions.shape[1] and probe.reads_components
        own = fractions @ own if reads_all else own[:, :, :0]
        views.append(
            View(beside, scores, states[row], own, label_effects[row], label_attention[row])
        )
    return views


def _fractions(
    question: Question, probe: NetworkProbe, sample: Data, prepared: Data, num_rows: int
) -> tuple[np.ndarray, list[str]]:
    """The fraction :math:`(C, N)` of components in the rows of a network's states, and names of those beside them."""
    fractions = question.kind.state_fractions(sample, prepared, probe.network, num_rows)
    if fractions is not None:
        return fractions, []
    number, beside = len(question.kind.components(sample)), probe.vectors_beside
    if number + sum(size for _, size in beside) != num_rows:
        beside = [("other inputs", num_rows - number)]
    if beside[0][1] < 0:
        raise ValueError(
            f"Expected component states for each of {number} components (got {num_rows}); the network "
            f"joins components, so explain it by method='occlusion'"
        )
    sizes = [1] * number + [size for _, size in beside]
    column = np.repeat(np.arange(len(sizes)), sizes)
    return (np.arange(len(sizes))[:, None] == column).astype(float), [name for name, _ in beside]
