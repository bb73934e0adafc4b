"""explain: why a model gave labels to samples, by several methods at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.index import ptr2index

from tg_mlc._names import nearest
from tg_mlc._options import check_choice
from tg_mlc.explanations.events import EventSubject, is_of_events
from tg_mlc.explanations.explanation import Explanation, SampleExplanation
from tg_mlc.explanations.faithfulness import NUM_RANDOM, SHARES, bond_occlusion, faithfulness, occlusion
from tg_mlc.explanations.network import Attention, NetworkProbe
from tg_mlc.explanations.subject import Subject
from tg_mlc.inputs.molecules import Molecules

Method = Literal[
    "attention", "rollout", "gradient", "integrated gradients", "alone", "shapley", "occlusion", "group occlusion"
]
METHODS: tuple[str, ...] = get_args(Method)
MAX_LABELS = 300  #: that are asked at once
CHUNK = 16  #: samples under a probe at a time
NUM_ORDERS = 3  #: random orders of components for Shapley values, and one beyond so many components
MANY = 64
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
        model (Predictor or torch.nn.Module): A loaded model, a model of :func:`auto`, or a network of logits.
        raw (Any): Raw inputs as the model takes them, or samples.
        labels (Sequence[str], optional): The labels to explain. (default: :obj:`None`, all)
        method (str, optional): One of the above, or :obj:`"auto"` for all of them, of which the most faithful is
            chosen. (default: :obj:`"auto"`)
        y (Tensor or numpy.ndarray, optional): True labels :math:`(N, L)` of all labels. (default: :obj:`None`, those of
            samples)
        given (Any, optional): Labels that are known already, as :meth:`~tg_mlc.inference.Predictor.predict` takes them.
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
    subject = (EventSubject if is_of_events(raw) else Subject)(model, raw, label_names, given, at)
    if names is not None and len(names) != len(subject.samples):
        raise ValueError(f"Expected 'names' for each of {len(subject.samples)} samples (got {len(names)})")
    asked = subject.label_names if labels is None else [labels] if isinstance(labels, str) else list(labels)
    if not asked:
        raise ValueError("Expected 'labels' of the model (got none); leave them out to explain all")
    for label in asked:
        if label not in subject.label_names:
            raise ValueError(f"Expected 'labels' of the model (got {label!r}){nearest(label, subject.label_names)}")
    if len(asked) > max_labels:
        num_labels, components = len(subject.label_names), max(len(subject.components(s)) for s in subject.samples)
        numbers = len(subject.samples) * len(asked) * (4 * num_labels + (len(METHODS) + 8) * components)
        raise ValueError(
            f"Expected at most {max_labels} labels at once (got {len(asked)}, whose explanation would take about "
            f"{8 * numbers / 1e9:.1f} GB); pass the ones of interest as 'labels', or a larger 'max_labels'"
        )
    places = [subject.label_names.index(label) for label in asked]
    wanted = METHODS if method == "auto" else (method,)
    samples = _explained(subject, places, wanted)
    if not samples[0].scores:
        raise ValueError(f"Expected a 'method' that applies to the model (got {method!r}); 'occlusion' applies to all")
    truth, probability = subject.truth(y), subject.probabilities()
    known = None if subject.given is None else subject.given.numpy()
    decision = subject.predictor.decide(probability, metric, known)
    for row, sample in enumerate(samples):
        sample.probability, sample.decision = probability[row, places], decision[row, places]
        sample.truth, sample.name = truth[row, places], sample.name if names is None else str(names[row])
        sample.given = None if known is None else known[row, places]
    measured_by = subject if validation is None else type(subject)(model, validation, label_names, None, at)
    measured_by.part = subject.part
    scored = samples if validation is None else _explained(measured_by, places, wanted)
    methods, per_sample = list(samples[0].scores), min(PER_SAMPLE, len(places))
    of_sample = 2 * len(SHARES) * per_sample * (len(methods) + NUM_RANDOM)  # masked samples
    few = slice(max(-(-MIN_CURVES // per_sample), measured_by.max_masked // of_sample))
    scores = [sample.scores for sample in scored[few]]
    told = None if measured_by.given is None else measured_by.given[few]
    measured = faithfulness(measured_by, measured_by.samples[few], scores, places, given=told, per_sample=per_sample)
    return Explanation(
        labels=asked,
        label_names=list(subject.label_names),
        threshold=np.array(subject.predictor.thresholds(metric))[places],
        state_names=subject.probes[0].state_names if samples[0].states.size else [],
        method=max(methods, key=lambda each: measured[each].gain if each in measured else -np.inf),
        faithfulness=measured,
        samples=samples,
        facts=subject.facts | {"metric": metric},
    )


def _explained(subject: Subject, places: list[int], wanted: Sequence[str]) -> list[SampleExplanation]:
    """All samples of a model, without probabilities."""
    found: list[SampleExplanation] = []
    for start in range(0, len(subject.samples), CHUNK):
        rows = range(start, min(start + CHUNK, len(subject.samples)))
        samples = [subject.samples[row] for row in rows]
        given = None if subject.given is None else subject.given[list(rows)]
        if empty := [row for row, sample in zip(rows, samples, strict=True) if not subject.components(sample)]:
            raise ValueError(f"Expected samples with components to explain (got none in sample {empty[0]})")
        views = [_views(subject, probe, samples, given, places, wanted) for probe in subject.probes]
        parts, clamped = subject.parts(samples, given), subject.clamped(samples, given, places)
        occluded: list[dict[str, np.ndarray]] = [{} for _ in rows]
        if {"occlusion", "group occlusion"} & {*wanted}:
            occluded = occlusion(subject, samples, places, given, of_groups="group occlusion" in wanted)
        cut = bond_occlusion(subject, samples, places, given) if "occlusion" in wanted else []
        for place, row in enumerate(rows):
            view = _mean([each[place] for each in views], len(places))
            names = [*subject.names(row), *view.beside]
            scores, is_own = view.scores, np.arange(len(names)) < len(names) - len(view.beside)
            if subject.part is not None:  # in the units of the whole
                scores = {f"{name} of {subject.part}": each * subject.weight[places] for name, each in scores.items()}
            for name in [name for name in occluded[place] if name in wanted]:
                scores[name] = np.full((len(names), len(places)), np.nan)
                scores[name][is_own] = occluded[place][name]
            smiles = samples[place].get("smiles")
            bonds, ends = subject.kind.bonds(samples[place]) if isinstance(subject.kind, Molecules) else ([], None)
            nothing = np.empty(0)  # until all samples are predicted together
            found.append(
                SampleExplanation(
                    name=subject.name(row),
                    raw=subject.raw(row),
                    components=names,
                    smiles=smiles,
                    atoms=None if smiles is None else np.where(is_own, np.arange(len(names)), -1),
                    probability=nothing,
                    decision=nothing,
                    truth=nothing,
                    states=view.states,
                    scores=scores,
                    attention=view.attention,
                    label_effects=view.label_effects * subject.weight[places],
                    clamped=clamped[place],
                    label_attention=view.label_attention,
                    parts={name: values[place, places] for name, values in parts.items()},
                    bonds=bonds,
                    bond_atoms=ends,
                    bond_scores={"occlusion": cut[place]} if bonds and cut else {},
                )
            )
    return found


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
        return View([], {}, none, np.empty((0, 0, 0, num_asked)), none, np.empty((0, 0, 0, num_asked)))
    scores = {name: np.mean([view.scores[name] for view in views], axis=0) for name in views[0].scores}
    arrays = [np.mean(each, axis=0) for each in list(zip(*views, strict=True))[2:]]
    return View(views[0].beside, scores, *arrays)


def _views(
    subject: Subject,
    probe: NetworkProbe,
    samples: list[Data],
    given: Tensor | None,
    places: list[int],
    wanted: Sequence[str],
) -> list[View]:
    """The explanation of each sample by a network."""
    batch = subject.batch(samples, given)
    attention = probe.attention(batch)
    none = np.zeros((len(samples), 0, len(places)))
    of_rows: dict[str, list[np.ndarray]] = {}
    states = label_effects = none
    label_attention = np.zeros((len(samples), 0, 0, 0, len(places)))
    to_components = [np.zeros((0, 0, 0, len(places)))] * len(samples)  # [rows, T, heads, L]
    if attention is not None:
        to_components = _split(attention.to_components[..., places].movedim(2, 0), attention.ptr)
        states = attention.states.sigmoid()[..., places].cpu().numpy()
        states = states.swapaxes(0, 1) if probe.state_names else none
        label_attention = attention.to_labels[..., places].movedim(2, 0).cpu().numpy()
        label_effects = probe.label_effects(batch, places).cpu().numpy()
        if probe.reads_components:
            rolled = {"attention": attention.to_components.mean(dim=(0, 1)), "rollout": _rollout(attention)}
            of_rows = {name: _split(each[:, places], attention.ptr) for name, each in rolled.items() if name in wanted}
    ways: dict[str, Callable[[Batch, list[int]], tuple[Tensor, Tensor, Tensor]]]
    ways = {"gradient": probe.gradients, "integrated gradients": probe.integrated} if probe.has_states else {}
    for name in [name for name in ways if name in wanted]:
        of_rows[name] = _split(*ways[name](batch, places)[:2])
    if {"alone", "shapley"} & {*wanted} and probe.beside_labels(batch) is not None:
        probe.logits(batch)
        sizes = probe.ptr.diff().tolist()
        for name, way in (("alone", _alone), ("shapley", _shapley)):
            if name in wanted:
                of_rows[name] = [way(probe, row, size)[:, places] for row, size in enumerate(sizes)]
    views = []
    for row, sample in enumerate(samples):
        number = len(next(iter(of_rows.values()))[row]) if of_rows else len(subject.components(sample))
        shares, beside = subject.rows_of(sample, probe.network, number)
        scores = {name: shares @ each[row] for name, each in of_rows.items()}
        own = np.moveaxis(to_components[row], 0, 2)
        own = shares @ own if own.shape[2] == shares.shape[1] and probe.reads_components else own[:, :, :0]
        views.append(View(beside, scores, states[row], own, label_effects[row], label_attention[row]))
    return views


def _alone(probe: NetworkProbe, row: int, size: int) -> np.ndarray:
    """Logits :math:`(n, L)` of each component alone, less those of none."""
    logits = probe.among(row, np.concatenate([np.zeros((1, size), bool), np.eye(size, dtype=bool)]))
    return np.asarray(logits[1:] - logits[0])


def _shapley(probe: NetworkProbe, row: int, size: int) -> np.ndarray:
    """Shapley values :math:`(n, L)` by random orders, each of them also backwards."""
    rng, number = np.random.default_rng(0), NUM_ORDERS if size <= MANY else 1
    orders = [each for _ in range(number) for order in [rng.permutation(size)] for each in (order, order[::-1])]
    ranks = np.stack([np.argsort(order) for order in orders])
    masks = ranks[:, None] < np.arange(size + 1)[:, None]  # [orders, size + 1, size]
    rises = np.diff(probe.among(row, masks.reshape(-1, size)).reshape(len(orders), size + 1, -1), axis=1)
    return np.asarray(np.take_along_axis(rises, ranks[:, :, None], axis=1).mean(axis=0))


def _rollout(attention: Attention) -> Tensor:
    """Attention through all steps and labels :math:`(N, L)`, with half a weight on what a label has already."""
    sample = ptr2index(attention.ptr)
    found = torch.zeros_like(attention.to_components[0, 0])
    for step, to_components in enumerate(attention.to_components.mean(dim=1)):
        found = (found + to_components) / 2
        if len(attention.to_labels):
            among = attention.to_labels[step].mean(dim=0)
            found = (found + torch.einsum("nj,nji->ni", found, among[sample])) / 2
    return found


def _split(values: Tensor, ptr: Tensor) -> list[np.ndarray]:
    """The rows of every sample."""
    return np.split(values.detach().double().cpu().numpy(), ptr[1:-1].tolist())
