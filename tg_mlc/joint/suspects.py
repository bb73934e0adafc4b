"""The suspects of an audit, each with what other labels say of its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import expit

from tg_mlc.joint.auditing import Audit, Evidence


class Voice(NamedTuple):
    """A known label of a sample, and what it says of another one."""

    label: str
    recorded: int
    probability: float  #: the probability that the label applies, by the inputs alone
    #: how far its value raises the probability (or the logit) that the other label applies
    effect: float


@dataclass(frozen=True)
class Suspect:
    """A recorded label that is likely wrong."""

    row: int  #: the sample
    label: str
    recorded: int
    probability: float  #: the probability of the record, given the inputs and all other labels
    by_inputs: float  #: the probability of the record, given the inputs alone
    suspicion: float
    swapped: float  #: the probability that the labels of the sample belong to another sample
    voices: list[Voice]  #: the other known labels, those with the largest effects first


def evidence_of(audit: Audit) -> Evidence:
    """Returns the evidence of an audit, or refuses one of samples that could not be read."""
    if audit.evidence is None:
        raise ValueError("Expected an audit of samples that can all be read (got others)")
    return audit.evidence


def suspects_of(audit: Audit, number: int) -> list[Suspect]:
    """Returns the most suspicious labels of an audit.

    Args:
        audit (Audit): The audit.
        number (int): The largest number of suspects.
    """
    evidence, cells = evidence_of(audit), audit.cells.head(number)
    names = evidence.model.label_names
    row = np.array(cells["row"], dtype=int)
    column = np.array([names.index(label) for label in cells["label"]], dtype=int)
    b = torch.from_numpy(evidence.base_logits[row]).float()
    y, label = torch.from_numpy(evidence.y[row]).float(), torch.from_numpy(column)
    effects = torch.zeros_like(b)
    for is_held_out, messages in evidence.messages():
        chosen = is_held_out[torch.from_numpy(row)].nonzero()[:, 0]
        if len(chosen):
            effects[chosen] = messages.contributions(b[chosen], y[chosen], label[chosen])
    present = expit(evidence.base_logits[row])
    swapped = audit.rows.set_index("row")["swapped"]
    suspects = []
    for index, cell in enumerate(cells.itertuples(index=False)):
        p = float(present[index, column[index]])
        by_size = effects[index].abs().argsort(descending=True, stable=True).tolist()
        voices = [
            Voice(names[j], int(y[index, j]), float(present[index, j]), float(effects[index, j]))
            for j in by_size
            if effects[index, j] != 0
        ]
        suspects.append(
            Suspect(
                row=int(cell.row),
                label=cell.label,
                recorded=int(cell.recorded),
                probability=float(cell.probability),
                by_inputs=p if cell.recorded == 1 else 1 - p,
                suspicion=float(cell.suspicion),
                swapped=float(swapped[cell.row]),
                voices=voices,
            )
        )
    return suspects
