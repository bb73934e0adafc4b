"""Layers to put into one's own PyG models."""

from tg_mlc.nn.attention import AttentionConv, BlockOptions
from tg_mlc.nn.feature import FeatureMessagePassing
from tg_mlc.nn.given import GivenLabels
from tg_mlc.nn.head import CoherentHead, LabelHead
from tg_mlc.nn.label import FeatureToLabelConv, LabelMessagePassing, LabelToLabelConv
from tg_mlc.nn.nodes import NeighbourComponents
from tg_mlc.nn.residual import ResidualMessages
from tg_mlc.nn.shortlist import Shortlister

__all__ = [
    "AttentionConv",
    "BlockOptions",
    "CoherentHead",
    "FeatureMessagePassing",
    "FeatureToLabelConv",
    "GivenLabels",
    "LabelHead",
    "LabelMessagePassing",
    "LabelToLabelConv",
    "NeighbourComponents",
    "ResidualMessages",
    "Shortlister",
]
