"""Labels that know each other: which label to look up next, and which labels are wrong."""

from tg_mlc.joint.auditing import Audit, Evidence, audit
from tg_mlc.joint.suggesting import suggest

__all__ = ["Audit", "Evidence", "audit", "suggest"]
