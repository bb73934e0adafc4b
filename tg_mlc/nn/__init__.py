"""Layers to put into one's own PyG models."""

from tg_mlc.nn.attention import AttentionConv, BlockOptions
from tg_mlc.nn.feature import FeatureMessagePassing, FeatureStates
from tg_mlc.nn.given import GivenLabels
from tg_mlc.nn.head import LabelHead
from tg_mlc.nn.label import FeatureToLabelConv, LabelMessagePassing, LabelStates, LabelToLabelConv, StepAttention

__all__ = [
    "AttentionConv",
    "BlockOptions",
    "FeatureMessagePassing",
    "FeatureStates",
    "FeatureToLabelConv",
    "GivenLabels",
    "LabelHead",
    "LabelMessagePassing",
    "LabelStates",
    "LabelToLabelConv",
    "StepAttention",
]
