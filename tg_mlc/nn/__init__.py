"""Layers to put into one's own PyG models."""

from tg_mlc.nn.attention import AttentionConv, BlockOptions
from tg_mlc.nn.feature import FeatureMessagePassing, FeatureStates
from tg_mlc.nn.known import KnownLabels
from tg_mlc.nn.label import FeatureToLabelConv, LabelMessagePassing, LabelStates, LabelToLabelConv, StepAttention
from tg_mlc.nn.readout import LabelReadout

__all__ = [
    "AttentionConv",
    "BlockOptions",
    "FeatureMessagePassing",
    "FeatureStates",
    "FeatureToLabelConv",
    "KnownLabels",
    "LabelMessagePassing",
    "LabelReadout",
    "LabelStates",
    "LabelToLabelConv",
    "StepAttention",
]
