"""The page of an audit: one HTML file in which a person decides which recorded labels are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from tg_mlc._names import register, shorten
from tg_mlc._options import check_count
from tg_mlc.explanations.drawing import draw, draw_sections
from tg_mlc.explanations.methods import Chunk
from tg_mlc.explanations.page import in_steps, render, significant
from tg_mlc.explanations.question import Question, as_plain
from tg_mlc.inference.features import row_of, rows_of
from tg_mlc.inputs.components import Components
from tg_mlc.inputs.kinds import components_of
from tg_mlc.joint.auditing import Audit
from tg_mlc.joint.messages import messages_of
from tg_mlc.joint.suspects import Suspect, evidence_of, suspects_of

MAX_VOICES = 12  #: Maximum number of other labels that are shown for a suspect.
MIN_EFFECT = 1e-3  #: Labels with smaller effects are not shown.
MAX_COMPONENTS = 60  #: Maximum number of columns, or of words without their text, that are shown.
MAX_LETTERS = 4000  #: Maximum size of a text that is shown.


def suspects_page(
    audit: Audit,
    number: int,
    explained: int | None,
    raw: Any,
    names: Sequence[Any] | None,
    rows: Sequence[int] | None,
    title: str | None,
) -> str:
    """Returns the HTML page of :meth:`tg_mlc.joint.Audit.report`."""
    check_count("number", number)
    check_count("explained", explained, or_none=True)
    size, evidence = len(audit.rows), evidence_of(audit)
    for argument, values in (("raw", raw), ("names", names), ("rows", rows)):
        if values is not None and len(values) != size:
            got = f"(got {len(values)})"
            raise ValueError(f"Expected '{argument}' for each of the {size} samples {got}")
    suspects = suspects_of(audit, number)
    if not suspects:
        raise ValueError("Expected an audit of at least one known label (got none)")
    shown = list(dict.fromkeys(suspect.row for suspect in suspects))
    inputs = _Inputs(evidence.model, evidence.raw, raw, shown)
    # A model follows the records that it was fitted to, so it cannot speak against them.
    is_explained = explained is not None and not evidence.is_fitted
    scores = inputs.scores(suspects[:explained]) if is_explained else {}
    titles = [_title(row, names, rows) for row in shown]
    sizes: dict[int, np.ndarray] = {}  #: By row, the largest score of each component.
    for index, values in scores.items():
        row = suspects[index].row
        sizes[row] = np.maximum(sizes.get(row, 0.0), np.abs(values))
    drawings = [inputs.draw(row, sizes.get(row)) for row in shown]
    noun = inputs.kind.parts
    unit = "logit" if messages_of(evidence.model).adds_logits else "probability"
    data = {
        "key": _key(audit),
        "names": names is not None,
        "noun": noun,
        "unit": unit,
        "suspects": [
            {
                "row": suspect.row if rows is None else int(rows[suspect.row]),
                "name": "" if names is None else str(names[suspect.row]),
                "title": titles[shown.index(suspect.row)],
                "drawing": shown.index(suspect.row),
                "label": suspect.label,
                "recorded": suspect.recorded,
                **_numbers(suspect),
                "scores": _steps(scores.get(index)),
            }
            for index, suspect in enumerate(suspects)
        ],
    }
    likely = int((audit.cells["suspicion"] >= 0.5).sum())
    facts = {
        "Recorded labels": f"{len(audit.cells):,}",
        "Likely wrong": f"{likely:,}",
        "Samples": f"{size:,}",
        "Rows with labels of another row": f"at most {audit.noise.attrs['swapped_rows']:.1%}",
    }
    return render(
        "suspects",
        data,
        title=title or "Which records are wrong",
        facts=facts,
        shown=f"{len(suspects):,}",
        total=f"{len(audit.cells):,}",
        samples=[{"name": name, **drawing} for name, drawing in zip(titles, drawings, strict=True)],
        noun=noun,
        unit=unit,
        num_explained=len(scores),
        is_fitted=evidence.is_fitted,
    )


register("method", suspects_page)


class _Inputs:
    """The inputs of samples that are shown, with their components.

    Args:
        model (Model): The model of the audit.
        source (Any): All samples, or their raw inputs.
        raw (Any): The raw inputs of all samples, if they are known beside :obj:`source`.
        rows (list[int]): The samples that are shown.
    """

    def __init__(self, model: Any, source: Any, raw: Any, rows: list[int]) -> None:
        self.model, self.rows = model, rows
        is_dataset = hasattr(source, "label_names")
        is_array = hasattr(source, "dtype") and not hasattr(source, "iloc")
        part = source[rows] if is_dataset or is_array else rows_of(source, rows)
        samples = part if is_dataset else model.read(part, on_error="raise").samples
        self.samples = samples
        self.kind: Components = model.kind or components_of(samples)
        if raw is not None:
            self.raw: Any = rows_of(raw, rows)
        else:
            self.raw = None if is_dataset else part

    def draw(self, row: int, sizes: np.ndarray | None) -> dict[str, Any]:
        """Returns what the page shows of a sample, as :func:`draw` does. If its components are too
        many, those with the largest scores are shown.
        """
        index = self.rows.index(row)
        sample, raw = self.samples[index], self._raw(index)
        components = self.kind.component_names(sample, raw)
        if isinstance(raw, str):
            raw = shorten(raw, MAX_LETTERS)
        if self.kind.are_columns and not isinstance(raw, Mapping):
            values = sample.x.view(-1).tolist()
            raw = {
                name: "" if np.isnan(value) else f"{value:.4g}"
                for name, value in zip(components, values, strict=True)
            }
        sections = self.kind.sections(sample, raw)
        if sections:
            return draw_sections(sections, len(components))
        drawing = draw(raw, components, self.kind.smiles(sample))
        for key in ("cells", "chips"):
            entries = drawing.get(key, [])
            if sizes is not None:
                entries = sorted(entries, key=lambda entry: -sizes[entry[0]])
            if len(entries) > MAX_COMPONENTS:
                drawing[key] = entries[:MAX_COMPONENTS]
                drawing["more"] = len(entries) - MAX_COMPONENTS
        return drawing

    def scores(self, suspects: Sequence[Suspect]) -> dict[int, np.ndarray]:
        """Returns how far the logit of a label falls if one component is hidden :math:`(C)`, by the
        index of a suspect, for as many suspects as the kind of input allows.
        """
        chosen, rows, hidden = [], list[int](), 0
        for index, suspect in enumerate(suspects):
            sample = self.samples[self.rows.index(suspect.row)]
            size = len(self.kind.components(sample))
            if size and suspect.row not in rows:
                hidden += size
                if hidden > self.kind.max_hidden(sample):
                    break
                rows.append(suspect.row)
            if size:
                chosen.append(index)
        if not chosen:
            return {}
        question = Question(self.model, self.samples[[self.rows.index(row) for row in rows]])
        labels = list(dict.fromkeys(suspects[index].label for index in chosen))
        columns = [question.label_names.index(label) for label in labels]
        falls = Chunk(question, question.samples, columns).occlusion
        return {
            index: falls[rows.index(suspects[index].row)][:, labels.index(suspects[index].label)]
            for index in chosen
        }

    def _raw(self, index: int) -> Any:
        if self.raw is None:
            return None
        return as_plain(row_of(self.raw, index))


def _title(row: int, names: Sequence[Any] | None, rows: Sequence[int] | None) -> str:
    title = f"Row {row if rows is None else rows[row]}"
    return title if names is None else f"{title}, {shorten(names[row], 60)}"


def _numbers(suspect: Suspect) -> dict[str, Any]:
    voices = [voice for voice in suspect.voices if abs(voice.effect) >= MIN_EFFECT][:MAX_VOICES]
    return {
        "probability": significant(suspect.probability),
        "inputs": significant(suspect.by_inputs),
        "suspicion": significant(suspect.suspicion),
        "swapped": significant(suspect.swapped),
        "voices": [
            [voice.label, voice.recorded, significant(voice.probability), significant(voice.effect)]
            for voice in voices
        ],
    }


def _steps(scores: np.ndarray | None) -> list[int] | None:
    return None if scores is None else in_steps(scores[None])[0][0]


def _key(audit: Audit) -> str:
    """Returns a name of the recorded labels, under which a browser keeps decisions about them."""
    evidence = evidence_of(audit)
    names = "\n".join(evidence.model.label_names).encode()
    return sha256(names + np.nan_to_num(evidence.y, nan=-1.0).tobytes()).hexdigest()[:16]
