"""Earlier paths of names that moved, each of which works for one more release with a warning.

A finder of modules, which :mod:`tg_mlc` installs, gives packages the names that they had before, and stands in for
packages that are gone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: Names by the package that had them, and the one that has them now: ``"old"``, or ``"old=new"`` for another name.
NAMES: dict[str, dict[str, str]] = {
    "tg_mlc.baselines": {"tg_mlc.stacking.combination": "Combination=LogitStacking"},
    "tg_mlc.convert": {"tg_mlc.papers.convert": "ReleasedLaMP load_lamp_checkpoint"},
    "tg_mlc.data": {"tg_mlc.data": "known_labels=given_labels"},
    "tg_mlc.data.preprocess": {
        "tg_mlc.inputs": ("Chain DNAInputs=DNA MoleculeInputs=Molecules Preprocessor QuantileScaler Scale TfIdf"),
        "tg_mlc.inputs.scalers": "LogCounts StandardScaler",
        "tg_mlc.inputs.preprocessor": "from_state to_state",
        "tg_mlc.stacking": "TunedScores=StackingFeatures",
        "tg_mlc.papers.base_scores": "ClassifierScores=published_features table_preprocessor",
    },
    "tg_mlc.data.splits": {"tg_mlc.data": "scaffold_split"},
    "tg_mlc.data.transforms": {"tg_mlc.inputs": "Fingerprint MoleculeDescriptors"},
    "tg_mlc.data.vocabulary": {"tg_mlc.data": "build_vocabulary tokenize"},
    "tg_mlc.datasets": {"tg_mlc.datasets.event_tables": "EVENT_SOURCES"},
    "tg_mlc.graphs": {"tg_mlc.graphs.compare": "NeighborDifference", "tg_mlc.graphs.plot": "plot_label_graph"},
    "tg_mlc.metrics": {"tg_mlc.metrics.ranking": "average_precision_per_label roc_auc_per_label"},
    "tg_mlc.models": {
        "tg_mlc.inputs": "input_encoder",
        "tg_mlc.papers.mlp": "BinaryRelevance PooledMLP",
        "tg_mlc.papers": (
            "GAML InfNet SPEN binary_relevance energy_network gaml graph2graph graph2graph_autoregressive "
            "mped mped_autoregressive pooled_mlp seq2seq"
        ),
        "tg_mlc.papers.spen": "InfNetOutput SPENOutput",
        "tg_mlc.papers.label_sequences": "LabelSequenceModel",
        "tg_mlc.models.lamp": "LaMPOutput",
    },
    "tg_mlc.nn": {
        "tg_mlc.nn": "KnownLabels=GivenLabels LabelReadout=LabelHead",
        "tg_mlc.nn.feature": "FeatureStates",
        "tg_mlc.nn.label": "LabelStates StepAttention",
    },
    "tg_mlc.nn.decoders": {
        "tg_mlc.papers.decoders": "AttentionDecoder Hypotheses RecurrentDecoder beam_search",
        "tg_mlc.papers.label_sequences": "LabelOrder label_ranks label_sequences next_log_probs shifted",
        "tg_mlc.papers.decoders.beam_search": "StepDecoder",
    },
    "tg_mlc.nn.encoders": {
        "tg_mlc.nn.encoders": "KnownComponents=GivenComponents",
        "tg_mlc.nn.encoders.components": "Components RecurrentEncoder",
        "tg_mlc.nn.encoders.graphs": "CategoricalEmbedding",
    },
    "tg_mlc.nn.evidence": {"tg_mlc.nn.base_scores": "Evidence=BaseScores ScoreEncoder SharedLogits"},
    "tg_mlc.predict": {
        "tg_mlc.saving": "Predictor from_pretrained load push_to_hub",
        "tg_mlc.saving.inference": "Scorer=InferenceModel ModuleScorer=ModuleInference",
    },
    "tg_mlc.recipes": {
        "tg_mlc.papers.recipes.graphs": "DNA MOLECULES PLANTED",
        "tg_mlc.papers.recipes": "RECIPES Recipe",
        "tg_mlc.papers.recipes.tables": "TABLES",
        "tg_mlc.stacking": "AutoModel auto",
    },
    "tg_mlc.recipes.family": {"tg_mlc.papers.recipes.family": "FAMILY"},
    "tg_mlc.sequences": {
        "tg_mlc.papers.next_set": "C2AE LSTMBaseline TimeAttention TransformerBase TwoAttentions",
        "tg_mlc.sequences.baselines": "past_events",
        "tg_mlc.sequences.dataset": "TIME_FRACTIONS",
        "tg_mlc.sequences.lanet": "LANETOutput",
        "tg_mlc.sequences.windows": "WindowViews",
    },
    "tg_mlc.sequences.presets": {"tg_mlc.sequences.lanet": "MEMORY PAPER"},
    "tg_mlc.training": {
        "tg_mlc.papers": ("InferenceNetworkObjective SequenceObjective=LabelSequenceObjective UnrolledObjective"),
        "tg_mlc.papers.next_set": "C2AEObjective",
        "tg_mlc.saving.checkpoint": "Checkpoint",
        "tg_mlc.saving": "read_checkpoint",
        "tg_mlc.training.callbacks": "AtomicCheckpointIO",
        "tg_mlc.training.data": "EpochSampler",
    },
}

#: Methods of ``tg_mlc.metrics.tune_thresholds`` by the function of ``tg_mlc.metrics`` that each was.
METHODS = {
    "tune_by_frequency": "frequency",
    "tune_by_rank": "rank",
    "tune_cross_fitted": "cross_fitted",
    "tune_per_metric": "shared",
}


def new_place(old: str, name: str) -> tuple[str, str] | None:
    """Returns the package that has a name now, and the name there, if the old package had it."""
    for new, names in NAMES[old].items():
        for pair in names.split():
            before, _, after = pair.partition("=")
            if before == name:
                return new, after or before
    return None


class MovedNames:
    """Finder of modules that gives packages the names they had before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the package that is still there with a loader that adds its earlier names, or a stand-in."""
        if fullname not in NAMES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return ModuleSpec(fullname, _StandIn(), is_package=True)
        if spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _add_names(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class _StandIn(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        _add_names(module)


def _add_names(module: ModuleType) -> None:
    others = vars(module).get("__getattr__")

    def find(name: str) -> Any:
        if module.__name__ == "tg_mlc.metrics" and name in METHODS:
            return _tune(name)
        place = new_place(module.__name__, name)
        if place is None:
            if others is not None:
                return others(name)
            raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")
        new = ".".join(place)
        warnings.warn(
            f"'{module.__name__}.{name}' is now '{new}'; the earlier path works in this release only",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(place[0]), place[1])

    module.__dict__["__getattr__"] = find


def _tune(name: str) -> Any:
    method = METHODS[name]
    warnings.warn(
        f"'tg_mlc.metrics.{name}' is now 'tg_mlc.metrics.tune_thresholds' with method={method!r}; the earlier function "
        f"works in this release only",
        DeprecationWarning,
        stacklevel=3,
    )

    def tune(y: Any, scores: Any, y_train: Any = None, *, per_label: bool = False, **options: Any) -> Any:
        from tg_mlc.metrics import tune_thresholds

        found: Any = "per_label" if per_label else method
        return tune_thresholds(y, scores, found, y_train=y_train, **options)

    return tune
