"""Brings what earlier versions stored to today's names, when a folder or checkpoint of theirs is read.

Whoever renames something that is stored adds the old name to a table here; whoever stores it in another form adds a
function to :obj:`STATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

_METRICS = {
    "ACC": "subset_accuracy",
    "HA": "hamming_accuracy",
    "ebF1": "f1_samples",
    "miF1": "f1_micro",
    "maF1": "f1_macro",
    "miAUC": "roc_auc_micro",
    "maAUC": "roc_auc_macro",
    "miAP": "average_precision_micro",
    "maAP": "average_precision_macro",
}
_OPTIONS = {"evidence_skip": "score_skip", "known_labels": "given_labels"}

#: Old to new keys, by the entry in which they stand.
KEYS: dict[str, dict[str, str]] = {
    "thresholds": _METRICS,
    "tuners": _METRICS,
    "validation": _METRICS,
    "test": _METRICS,
    "hyper_parameters": {"decay": "lr_schedule"},
    "objective": {"max_known": "max_given"},
    "options": _OPTIONS,
    "lamp": _OPTIONS,
    "attributes": {"evidence": "base_scores", "known": "given"},
    "": {"known_labels": "given_labels", "skip": "score_skip"},
    "base_scores": {"skip": "score_skip"},
    "window": {"tau": "window_size"},
    "views": {"pieces": "kmers"},
}

#: Old to new values, by the entry that they are the value of: classes, builders, metrics, attributes.
VALUES: dict[str, dict[Any, Any]] = {
    "class": {"Evidence": "BaseScores", "SequenceObjective": "LabelSequenceObjective"},
    "name": {
        "ClassifierScores": "StackingFeatures",
        "DNAInputs": "DNA",
        "MoleculeInputs": "Molecules",
        "TunedScores": "StackingFeatures",
    },
    "view": {"pieces": "kmers"},
    "metric": _METRICS,
    "key": {"'evidence'": "'base_scores'"},
}

#: Old to new names of submodules, in the dotted keys of state dicts and settings, by what they hold: a user's own
#: module of such a name stays.
MODULES = {
    "evidence": ("base_scores", {""}),
    "evidence_encoder": ("score_encoder", {"scale", "shift", "lin.weight"}),
    "skip": ("score_skip", {"scale", "shift", "lin.weight", "lin.bias"}),
    "known_labels": ("given_labels", {"embedding", "embedding.weight"}),
}

# Title, baseline and reading of the classifiers that were tuned within a time, by kind; and, with their view, of those
# that validation samples chose.
_TUNED = {
    "svm": ("linear SVM", "linear", "margin"),
    "logistic": ("logistic regression", "linear", "logit"),
    "ridge": ("kernel ridge regression", "kernel_ridge", "probability"),
    "forest": ("random forest", "forest", "probability"),
}
_VALIDATED = {
    "svm": ("linear SVM, tuned", "linear", "raw", "inputs"),
    "ridge": ("kernel ridge regression, tuned", "kernel_ridge", "raw", "inputs"),
    "exact": ("kernel ridge regression, tuned for subset accuracy", "kernel_ridge", "raw", "inputs"),
    "forest": ("random forest on Morgan fingerprints", "forest", "relative", "morgan_bits"),
    "molecule_ridge": (
        "kernel ridge regression on fingerprints and descriptors", "kernel_ridge", "relative", "vectors",
    ),
}  # fmt: skip


def _forest(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a forest; that of molecules had frequencies, one of all labels its trees alone."""
    names = {"num_trees": "n_estimators", "seed": "random_state"}
    settings = {names.get(name, name): value for name, value in state["settings"].items() if name != "radius"}
    num_features = settings.pop("num_bits", None)
    if "trees" not in state:
        return {**state, "settings": {**settings, "criterion": "gini"}, "num_features": num_features}
    frequency = torch.zeros(len(state["trees"]["labels"]), dtype=torch.double)  # trees know all labels
    return {
        "settings": {**settings, "criterion": "squared_error"},
        "search": [],
        "num_features": num_features,
        "frequency": frequency,
        "forests": [state["trees"]],
    }


def _stacking_features(state: dict[str, Any]) -> dict[str, Any]:
    """Classifiers were stored as ``tuned`` beside their views, or by kind alone, with what their views had learned."""
    if "classifiers" in state:
        return state
    views, classifiers = dict(state.get("views", {})), {}
    for kind, entry in state.get("tuned", state).items():
        if "tuned" in state:
            title, baseline, reading = _TUNED[kind]
            found = {"view": entry["view"], "setting": entry["setting"], "state": entry["state"]}
        else:
            title, baseline, reading, view = _VALIDATED[kind]
            found = {"view": view, "setting": [], "state": entry.get("classifier", entry)}
            is_forest = view == "morgan_bits"
            bits = entry["classifier"]["settings"]["num_bits"] if is_forest else 0
            views[view] = {"num_bits": bits} if is_forest else entry.get("scalers", {})
        if baseline == "forest":
            found["state"] = _forest(found["state"])
        found["frequency"] = entry["frequency"] if reading == "relative" else None
        classifiers[kind] = {"title": title, "baseline": baseline, "reading": reading, "tried": [], **found}
    return {"views": views, "classifiers": classifiers}


#: Functions that bring the state of a preprocessor, whose keys have today's names, to today's form, by its class.
STATES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "EventPreprocessor": lambda state: {{"tau": "window_size"}.get(key, key): value for key, value in state.items()},
    # Molecules describe themselves today.
    "Chain": lambda state: {"steps": [step for step in state["steps"] if step["name"] != "Described"]},
    "StackingFeatures": _stacking_features,
}

#: Today's options that replace a former option, by its value.
CHOICES: dict[str, dict[Any, dict[str, Any]]] = {
    "encoder": {
        "emb": {"node_messages": False},
        "fmp": {"node_messages": True},
        "vectors": {"node_messages": False, "atoms": False},
    }
}

_DOTTED = ("state_dict", "settings")  # entries whose keys are paths in a model
_CHOSEN = ("options", "lamp")  # entries that hold options of builders
_USERS = ("config",)  # entries whose content users named


def upgrade(value: Any, entry: str | None = None) -> Any:
    """Returns what an earlier version stored under today's names, given the key of this value, if it has one."""
    if isinstance(value, (list, tuple)):
        return type(value)(upgrade(item, entry) for item in value)
    if not isinstance(value, Mapping):
        names = VALUES.get(entry or "", {})
        return names.get(value, value) if isinstance(value, str) else value
    if entry in _USERS:
        return value
    names = {} if entry is None else KEYS.get(entry, {})
    found: dict[Any, Any] = {}
    for old, item in value.items():
        if entry in _CHOSEN and isinstance(item, str) and item in CHOICES.get(old, {}):
            found.update(CHOICES[old][item])
            continue
        new = _path(old) if entry in _DOTTED else names.get(old, old)
        found[new] = upgrade(item, new)
    if entry == "settings":
        found.pop("objective", None)  # which the hyper-parameters tell
    if found.keys() == {"name", "state"}:
        if found["name"] == "TableInputs":  # of words and of vectors
            found["name"] = "Vectors" if found["state"]["kind"] == "vector" else "Words"
        if found["name"] in STATES:
            found["state"] = STATES[found["name"]](found["state"])
    return found


def _path(old: str) -> str:
    parts = old.split(".")
    for place, part in enumerate(parts):
        new, holds = MODULES.get(part, (part, set()))
        if ".".join(parts[place + 1 :]) in holds:
            parts[place] = new
    return ".".join(parts)
