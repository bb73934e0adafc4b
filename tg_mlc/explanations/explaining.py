"""explain: why a model gave labels to samples, by several methods at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from torch_geometric.data import Data

from tg_mlc._names import nearest, shorten
from tg_mlc._options import check_choice
from tg_mlc.explanations.explanation import Explanation, Faithfulness, SampleExplanation
from tg_mlc.explanations.faithfulness import NUM_RANDOM, SHARES, faithfulness, occlusion
from tg_mlc.explanations.network import Attention, NetworkProbe
from tg_mlc.explanations.subject import Subject

Method = Literal["attention", "rollout", "gradient", "integrated gradients", "occlusion"]
METHODS: tuple[str, ...] = get_args(Method)
MAX_LABELS = 300  #: that are asked at once
MAX_MASKED = 2000  #: masked samples by which faithfulness is measured
CHUNK = 16  #: samples under a probe at a time


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
      :obj:`at` its last layer, this is class activation.
    - :obj:`"integrated gradients"`: the same along the straight path from zero states, as the `"Axiomatic Attribution
      for Deep Networks" <https://arxiv.org/abs/1703.01365>`_ paper; they sum to the difference of logits within 1 %.
    - :obj:`"occlusion"`: by how much the logit falls where one component is masked: a word left out, a column unknown,
      an atom without its bonds and, in fingerprints and descriptors, a dummy.

    All but the last look into a network, and are named :obj:`"... of LaMP"` where the model is one of :func:`auto`,
    whose logit also comes from base classifiers; occlusion is of the whole model always.

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
        given (Any, optional): Labels that are known already, as :meth:`~tg_mlc.saving.Predictor.predict` takes them.
            (default: :obj:`None`)
        names (Sequence[str], optional): What to call the samples. (default: :obj:`None`, by their inputs)
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
    subject = Subject(model, raw, label_names, given, at)
    asked = subject.label_names if labels is None else [labels] if isinstance(labels, str) else list(labels)
    for label in asked:
        if label not in subject.label_names:
            near = nearest(label, subject.label_names)
            raise ValueError(f"Expected 'labels' of the model (got {label!r}){near}")
    _check_size(subject, len(asked), max_labels)
    places = [subject.label_names.index(label) for label in asked]
    wanted = METHODS if method == "auto" else (method,)
    samples = [
        sample
        for start in range(0, len(subject.samples), CHUNK)
        for sample in _explained(subject, slice(start, start + CHUNK), places, wanted)
    ]
    probability = expit(subject.logits(subject.samples, subject.given).numpy())
    decision = subject.predictor.decide(probability, metric, None if subject.given is None else subject.given.numpy())
    truth = _truth(subject, y)
    for row, sample in enumerate(samples):
        sample.probability, sample.decision = probability[row, places], decision[row, places]
        sample.truth = truth[row, places]
        sample.name = sample.name if names is None else str(names[row])
    if validation is None:
        of, scored = subject, [sample.scores for sample in samples]
    else:
        of = Subject(model, validation, label_names, None, at)
        parts = (slice(start, start + CHUNK) for start in range(0, len(of.samples), CHUNK))
        scored = [sample.scores for part in parts for sample in _explained(of, part, places, wanted)]
    if not samples[0].scores:
        raise ValueError(f"Expected a 'method' that applies to the model (got {method!r}); 'occlusion' applies to all")
    measured = _measured(of, scored, places)
    chosen = max(samples[0].scores, key=lambda each: measured[each].gain if each in measured else -np.inf)
    return Explanation(
        labels=asked,
        label_names=list(subject.label_names),
        threshold=np.array(subject.predictor.thresholds(metric))[places],
        state_names=subject.probes[0].state_names if subject.probes and samples[0].states.size else [],
        method=chosen,
        faithfulness=measured,
        samples=samples,
        facts={"model": type(subject.predictor.scorer).__name__, "metric": metric},
    )


def _check_size(subject: Subject, num_asked: int, max_labels: int) -> None:
    if num_asked <= max_labels:
        return
    num_labels, components = len(subject.label_names), max(len(subject.components(s)) for s in subject.samples)
    numbers = len(subject.samples) * num_asked * (4 * num_labels + (len(METHODS) + 8) * components)
    raise ValueError(
        f"Expected at most {max_labels} labels at once (got {num_asked}, whose explanation would take about "
        f"{8 * numbers / 1e9:.1f} GB); pass the ones of interest as 'labels', or a larger 'max_labels'"
    )


def _truth(subject: Subject, y: Any) -> np.ndarray:
    if y is None:
        found = [sample.get("y") for sample in subject.samples]
        nothing = torch.full((1, len(subject.label_names)), torch.nan)
        return torch.cat([nothing if each is None else each.view(1, -1) for each in found]).double().numpy()
    truth = np.asarray(y, dtype=float)
    if truth.shape != (len(subject.samples), len(subject.label_names)):
        raise ValueError(
            f"Expected 'y' of shape {[len(subject.samples), len(subject.label_names)]} (got {list(truth.shape)})"
        )
    return truth


def _measured(subject: Subject, scored: Sequence[Any], places: list[int]) -> dict[str, Faithfulness]:
    """The faithfulness of all methods, by as many samples as :obj:`MAX_MASKED` masks are enough for."""
    per_sample = min(2, len(places))
    cost = 2 * len(SHARES) * per_sample * (len(scored[0]) + NUM_RANDOM)
    number = max(1, MAX_MASKED // cost)
    return faithfulness(subject, subject.samples[:number], scored[:number], places, per_sample=per_sample)


def _explained(subject: Subject, part: slice, places: list[int], wanted: Sequence[str]) -> list[SampleExplanation]:
    """Some samples, without probabilities."""
    samples = subject.samples[part]
    given = None if subject.given is None else subject.given[part]
    components = [subject.components(sample) for sample in samples]
    for row, names in enumerate(components):
        if not names:
            raise ValueError(f"Expected samples with components to explain (got none in sample {part.start + row})")
    empty = np.empty((0, len(places)))
    of_networks = [_of_network(subject, probe, samples, given, places, wanted) for probe in subject.probes]
    parts, clamped = subject.parts(samples), _clamped(subject, samples, given, places)
    found = []
    for row, sample in enumerate(samples):
        each = [one[row] for one in of_networks]
        smiles = sample.get("smiles")
        scores = {
            name: np.mean([one["scores"][name] for one in each], axis=0) for name in (each[0]["scores"] if each else ())
        }
        names = components[row] + (each[0]["beside"] if each else [])
        weight = subject.weight[places]
        if subject.automatic is not None:
            scores = {f"{name} of LaMP": weight * values for name, values in scores.items()}
        if "occlusion" in wanted:
            values = occlusion(subject, sample, places, None if given is None else given[row])
            scores["occlusion"] = np.full((len(names), len(places)), np.nan)
            scores["occlusion"][: len(values)] = values
        atoms = np.where(np.arange(len(names)) < len(components[row]), np.arange(len(names)), -1)
        mean = (
            {
                key: np.mean([one[key] for one in each], axis=0)
                for key in ("states", "attention", "label_attention", "effects")
            }
            if each
            else {}
        )
        found.append(
            SampleExplanation(
                name=shorten(
                    smiles or " ".join(components[row]) if subject.kind is not None else f"sample {part.start + row}"
                ),
                raw=smiles,
                components=names,
                probability=empty,
                decision=empty,
                truth=empty,
                states=mean.get("states", empty),
                scores=scores,
                attention=mean.get("attention", np.empty((0, 0, len(names), len(places)))),
                label_effects=weight * mean["effects"] if each else empty,
                clamped=clamped[row],
                label_attention=mean.get("label_attention", empty),
                parts={name: values[row, places] for name, values in parts.items()},
                smiles=smiles,
                atoms=None if smiles is None else atoms,
            )
        )
    return found


def _of_network(
    subject: Subject,
    probe: NetworkProbe,
    samples: list[Data],
    given: Tensor | None,
    places: list[int],
    wanted: Sequence[str],
) -> list[dict[str, Any]]:
    """The scores, states and messages of one network, for each sample."""
    batch = subject.batch(samples, given)
    attention = probe.attention(batch)
    effects = probe.label_effects(batch, places).cpu().numpy() if probe.labels is not None else None
    rows: dict[str, list[np.ndarray]] = {}
    ptr = probe.ptr
    if attention is not None and not probe.inputs and probe.at is None:
        if "attention" in wanted:
            rows["attention"] = _split(attention.to_components.mean(dim=(0, 1))[:, places], ptr)
        if "rollout" in wanted:
            rows["rollout"] = _split(_rollout(attention, ptr)[:, places], ptr)
    if "gradient" in wanted and probe.has_states:
        products, ptr, _ = probe.gradients(batch, places)
        rows["gradient"] = _split(products, ptr)
    if "integrated gradients" in wanted and probe.has_states:
        scores, ptr, _ = probe.integrated(batch, places)
        rows["integrated gradients"] = _split(scores, ptr)
    found = []
    for row, sample in enumerate(samples):
        number = len(next(iter(rows.values()))[row]) if rows else len(subject.components(sample))
        shares, beside = subject.rows_of(sample, probe.network, number)
        one: dict[str, Any] = {"beside": beside}
        one["scores"] = {name: shares @ values[row] for name, values in rows.items()}
        if attention is not None:
            of_rows = attention.to_components[..., places].cpu().double().numpy()
            own = of_rows[:, :, int(probe.ptr[row]) : int(probe.ptr[row + 1])]
            one["attention"] = shares @ own if own.shape[2] == shares.shape[1] else own[:, :, :0]
            one["label_attention"] = attention.to_labels[:, :, row].mean(dim=(0, 1))[:, places].cpu().double().numpy()
            states = torch.cat([attention.states[:, row], probe.logits(batch).detach()[None, row]])
            one["states"] = states.sigmoid()[:, places].cpu().double().numpy()
        one["effects"] = effects[row] if effects is not None else np.empty((0, len(places)))
        found.append(one)
    return found


def _rollout(attention: Attention, ptr: Tensor) -> Tensor:
    """Attention through all steps and labels :math:`(N, L)`, with half a weight on what a label has already."""
    sample = torch.arange(ptr.numel() - 1, device=ptr.device).repeat_interleave(ptr.diff())
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


def _clamped(subject: Subject, samples: list[Data], given: Tensor | None, places: list[int]) -> np.ndarray:
    """By how much logits rise if a label is given as absent or present, :math:`(N, J, 2, L)`."""
    num_labels = len(subject.label_names)
    if not subject.takes_given or num_labels < 2:
        return np.empty((len(samples), 0, 2, len(places)))
    start = torch.full((len(samples), num_labels), torch.nan) if given is None else given
    before = subject.logits(samples, start)[:, places]
    found = torch.full((len(samples), num_labels, 2, len(places)), torch.nan, dtype=torch.double)
    for label in range(num_labels):
        for value in (0, 1):
            clamped = start.clone()
            clamped[:, label] = value
            found[:, label, value] = subject.logits(samples, clamped)[:, places] - before
    for column, label in enumerate(places):
        found[:, label, :, column] = torch.nan
    return found.numpy()
