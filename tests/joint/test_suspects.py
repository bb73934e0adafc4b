from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from torch import from_numpy

from tg_mlc.graphs import fully_connected
from tg_mlc.joint import auditing
from tg_mlc.joint.suspects import suspects_of
from tg_mlc.nn import ResidualMessages

NAMES = ["a", "copy", "tall"]


class Named:
    label_names = NAMES


@pytest.fixture(scope="module", params=[False, True], ids=["probability", "logit"])
def audited(request):
    """Returns an audit of a data set in which "copy" repeats "a", except in sample 7."""
    rng = np.random.default_rng(0)
    b = 2 * rng.standard_normal((120, 3))
    y = (rng.random((120, 3)) < expit(b)).astype(float)
    y[:, 1] = y[:, 0]
    y[7, 1] = 1 - y[7, 1]
    y[8, 2] = np.nan
    messages = ResidualMessages(fully_connected(3))
    messages.start_from_residuals(from_numpy(b).float(), from_numpy(y).float())
    messages.damp(0.3, adds_logits=request.param)
    rng = np.random.default_rng(0)
    fold = rng.permutation(len(y)) % auditing.FOLDS
    result = auditing.suspects(messages, NAMES, b, y, fold, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auditing, "messages_of", lambda _: messages)
        yield replace(result, evidence=auditing.Evidence(Named, None, b, y, fold, True))


def test_effects_add_up_to_what_the_other_labels_change(audited, request):
    """The correlations are those that the audit used, which leave out the fold of the sample."""
    for suspect in suspects_of(audited, 50):
        p, changed = (
            value if suspect.recorded == 1 else 1 - value
            for value in (suspect.by_inputs, suspect.probability)
        )
        change = sum(voice.effect for voice in suspect.voices)
        if "logit" in request.node.name:
            assert logit(changed) == pytest.approx(logit(p) + change, abs=1e-3)
        else:
            limits = p / 64, 1 - (1 - p) / 64
            assert changed == pytest.approx(np.clip(p + change, *limits), abs=1e-4)


def test_a_copy_with_another_value_speaks_against_a_record(audited):
    y = audited.evidence.y
    suspects = suspects_of(audited, len(audited.cells))
    suspects = {suspect.label: suspect for suspect in suspects if suspect.row == 7}
    for label, other in ("a", "copy"), ("copy", "a"):
        suspect = suspects[label]
        first = suspect.voices[0]
        assert (first.label, first.recorded) == (other, y[7, NAMES.index(other)])
        assert np.sign(first.effect) == (-1 if suspect.recorded == 1 else 1)
        assert label not in [voice.label for voice in suspect.voices]


def test_unknown_labels_say_nothing(audited):
    suspects = [suspect for suspect in suspects_of(audited, len(audited.cells)) if suspect.row == 8]
    assert len(suspects) == 2
    assert "tall" not in {voice.label for suspect in suspects for voice in suspect.voices}
