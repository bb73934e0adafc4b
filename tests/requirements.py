"""Requirements of tests that not every installation meets."""

import pytest
import torch

#: Whether PyTorch is 2.7 or newer. Older versions export no model, and compile models in pieces.
FULL_GRAPH = hasattr(torch.compiler, "is_exporting")
needs_export = pytest.mark.skipif(not FULL_GRAPH, reason="needs PyTorch 2.7")
