"""Internals of PyG that layers rely on or change, all in this file."""

from __future__ import annotations

import inspect
from typing import Any, cast

from torch_geometric.nn import MessagePassing

#: Options of PyG's message passing that its layers pass on; the first dimension is always that of the nodes.
MESSAGE_PASSING_OPTIONS = frozenset(inspect.signature(MessagePassing).parameters) - {"node_dim"}


class FusedMessagePassing(MessagePassing):
    """Message passing whose subclasses may go without single messages, and yet tell explainers of them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # PyG swaps a class's 'propagate' for a compiled one. A subclass that took over its parent's compiled one would
        # fall back to it under an explainer, whose edge mask would then be ignored.
        if FusedMessagePassing not in cls.__bases__ and "propagate" not in cls.__dict__:
            cls.propagate = MessagePassing.propagate

    @property
    def explain(self) -> bool | None:
        """Tells whether an explainer looks at the messages, set by PyG."""
        return cast("bool | None", self._explain)

    @explain.setter
    def explain(self, explain: bool | None) -> None:
        MessagePassing.explain.fset(self, explain)
        # A subclass's own 'propagate' ends in that of a parent, whose compiled form ignores the masks of explainers.
        for parent in type(self).__mro__[1:] if explain else ():
            if "_orig_propagate" in vars(parent):
                setattr(parent, "propagate", vars(parent)["_orig_propagate"])  # noqa: B010 (a class of any kind)

    def has_message_hooks(self) -> bool:
        """Tells whether somebody listens to single messages or to their sum."""
        return any(
            (
                self._message_forward_pre_hooks,
                self._message_forward_hooks,
                self._aggregate_forward_pre_hooks,
                self._aggregate_forward_hooks,
            )
        )
