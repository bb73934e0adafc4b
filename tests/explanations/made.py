"""Made-up explanations of small samples, one of every kind that a report draws."""

from __future__ import annotations

from typing import Any

import numpy as np

import tg_mlc
from tg_mlc.data import from_arrays, tokenize
from tg_mlc.explanations.explanation import Explanation, Faithfulness, SampleExplanation
from tg_mlc.joint import Audit

BAD_NAME = "<script>document.title = 'changed'</script>"
LABELS = ["liver & bile", BAD_NAME, "skin", "heart"]
WORDS = ["a", "b", "bold", "word", "claim", "absent"]
#: Raw input, components, and the atom index of each component, by kind of sample.
SAMPLES: dict[str, tuple[Any, list[str], list[int] | None]] = {
    "molecule": ("CC(=O)Oc1ccccc1", [*(f"C{i}" for i in range(10)), "morgan"], [*range(10), -1]),
    "text": ("A <b>bold</b> word, a bold claim.", WORDS, None),
    "dna": ("ACGTACGTAC", ["ACGT", "ACGT", "AC"], None),
    "row": ({"height": 1.5, "colour": "<i>red</i>"}, ["height", "colour"], None),
    "parts": (None, ["bread -2", "milk -1"], None),
}
#: The atoms of each bond of the molecule, by the name of the bond.
BONDS = {"C0-C1": (0, 1), "C1=O2": (1, 2), "C1-O3": (1, 3), "O3-C4": (3, 4)} | {
    f"C{i}:C{i + 1 if i < 9 else 4}": (i, i + 1 if i < 9 else 4) for i in range(4, 10)
}
#: The gain in faithfulness of each method.
METHODS = {"integrated gradients of LaMP": 0.4, "attention of LaMP": 0.1, "occlusion": 0.3}


def make_explanation(*kinds: str, messages: bool = True, labels: list[str] = LABELS) -> Explanation:
    """Makes up an explanation with one sample per kind. Without messages, the model has no LaMP."""
    rng, size = np.random.default_rng(0), len(labels)
    samples = []
    for kind in kinds or tuple(SAMPLES):
        raw, components, atoms = SAMPLES[kind]
        num_components, logits = len(components), rng.normal(size=size)
        scores = {method: rng.normal(size=(num_components, size)) for method in METHODS}
        scores["attention of LaMP"] = np.abs(scores["attention of LaMP"])
        bonds = BONDS if kind == "molecule" else {}
        bond_scores = np.random.default_rng(1).normal(size=(len(bonds), size))
        effects_shape = (size if messages else 0, size)
        steps_and_heads = (2, 3) if messages else (0, 0)
        sample = SampleExplanation(
            name=f"the <em>{kind}</em>",
            raw=raw,
            components=components,
            probability=1 / (1 + np.exp(-logits)),
            decision=logits > 0,
            truth=np.resize([1.0, 0.0, np.nan], size),
            states=rng.random((4 if messages else 0, size)),
            scores=scores,
            attention=rng.random((*steps_and_heads, num_components, size)),
            label_effects=rng.normal(size=effects_shape),
            clamped=rng.normal(size=(effects_shape[0], 2, size)),
            label_attention=rng.random((*steps_and_heads, *effects_shape)),
            parts={"random forest": 0.25 * logits, "LaMP": 0.75 * logits} if messages else {},
            smiles=raw if kind == "molecule" else None,
            atoms=None if atoms is None else np.array(atoms),
            bonds=[*bonds],
            bond_atoms=np.array([*bonds.values()]) if bonds else None,
            bond_scores={"occlusion": bond_scores} if bonds else {},
        )
        samples.append(sample)
    areas = {name: Faithfulness(0.5 - gain / 2, 0.5 + gain / 2) for name, gain in METHODS.items()}
    return Explanation(
        labels=labels,
        label_names=labels,
        threshold=np.full(size, 0.5),
        state_names=["1.1", "1.2", "2.1", "2.2"] if messages else [],
        method="integrated gradients of LaMP",
        faithfulness={**areas, "random": Faithfulness(0.5, 0.52)},
        samples=samples,
        facts={"weights": {"random forest": 0.3, "LaMP": 0.7}, "data": "0123456789abcdef"}
        | ({"label_graph": [[0, 1, 2], [1, 2, 0]]} if messages else {}),
    )


#: The labels of a made-up audit; the second one repeats the first one.
AUDITED = ["=a", BAD_NAME, "claims"]


def make_audit() -> tuple[Audit, list[str]]:
    """Audits twenty new texts, and returns the texts, too. The first word tells the first label in
    most texts, and the second word the third label. The record of the second label is wrong in row
    3.
    """
    rng = np.random.default_rng(0)
    word, has_alpha = rng.choice(WORDS, 120), rng.random(120) < 0.5
    copied = np.where(rng.random(120) < 0.8, has_alpha, ~has_alpha)
    y = np.column_stack([copied, copied, word == "claim"]).astype(float)
    pairs = zip(has_alpha, word, strict=True)
    texts = [f"{'alpha' if has else 'beta'} <b>{second}</b>" for has, second in pairs]
    words = [tokenize(text) for text in texts[:100]]
    model = tg_mlc.auto(from_arrays(words, y[:100], label_names=AUDITED), seconds=0)
    recorded = y[100:].copy()
    recorded[3, 1] = 1 - recorded[3, 1]
    recorded[4, 0] = np.nan
    return model.audit(texts[100:], recorded), texts[100:]
