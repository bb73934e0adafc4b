"""Labels that know each other: which to look up next, which are wrong, and who tells whom."""

from tg_mlc.joint.auditing import Audit, Evidence, audit
from tg_mlc.joint.depending import dependencies
from tg_mlc.joint.suggesting import suggest

__all__ = ["Audit", "Evidence", "audit", "dependencies", "suggest"]
