from __future__ import annotations

import argparse
import pathlib

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from tests.models.samples import batch as molecules
from tests.papers.released import Config, Released, random_state
from tg_mlc.graphs import fully_connected
from tg_mlc.nn.encoders import MoleculeEncoder
from tg_mlc.ops import to_dense_weights
from tg_mlc.papers.convert import ReleasedLaMP, load_lamp_checkpoint

L = Config.num_labels
#: Asymmetric: label 1 has no neighbour, and the only edge to label 2 has a weight below 1.
ADJ = torch.zeros(L, L)
ADJ[0, 1] = ADJ[0, 4] = ADJ[3, 0] = ADJ[4, 4] = 1.0
ADJ[2, 3] = 0.5
ATTENTION_MASKS = {
    "none": None,
    "inveye": np.eye(L, dtype=bool),
    "eye": ~np.eye(L, dtype=bool),
    "prior": (ADJ.numpy() != 0) | np.diag([False, True, True, False, False]),
}
TOKENS = np.array([[2, 5, 7, 3, 0, 0], [2, 4, 4, 9, 10, 3], [2, 3, 0, 0, 0, 0], [2, 6, 8, 3, 0, 0]])
BACKENDS = ("reference", "scatter", "dense")
CONFIGS = {
    "bag": Config(),
    "sequence": Config(max_length=6),
    "one step": Config(n_layers_dec=1, n_layers_enc=1, int_preds=False),
    "three steps": Config(n_layers_dec=3, n_layers_enc=3, max_length=9),
    "no encoder layer": Config(n_layers_enc=0),
    "one head": Config(n_head=1, n_head2=1, d_k=8, d_v=8),
    "one head with narrow keys": Config(n_head=1, n_head2=1, d_k=3, d_v=8),
    "fewer heads among labels": Config(n_head=4, n_head2=2),
    "heads that do not divide the channels": Config(n_head=3, n_head2=3, d_k=2, d_v=2),
    "values wider than keys": Config(n_head=2, n_head2=2, d_k=3, d_v=5),
    "vectors": Config(vectors=True),
    "no attention among labels": Config(no_dec_self_att=True),
}


def weights(config=CONFIGS["bag"]):
    return {name: tensor * 0.5 for name, tensor in random_state(config).items()}


def ragged(x):
    rows = [row[None] if row.is_floating_point() else row[row != 0] for row in torch.from_numpy(x)]
    return Batch.from_data_list([Data(x=row) for row in rows])


def load(state, config=CONFIGS["bag"], mask="none", **kwargs):
    adj = ADJ if mask == "prior" else None
    return load_lamp_checkpoint(state, mask, adj, heads=config.n_head, **kwargs)


@torch.no_grad()
def outputs(model, batch):
    return model(batch, return_intermediate=True, return_attention_weights=True)


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, torch.from_numpy(theirs.copy()).float(), rtol=0.0, atol=1e-5)


def assert_equal_weights(ours, theirs, heads, present=1.0):
    """Compares ours ``[B, heads, L, S]`` with theirs ``[heads * B, L, S]`` times ``present``."""
    theirs = theirs.reshape(heads, -1, *theirs.shape[1:]).swapaxes(0, 1)
    assert_close(to_dense_weights(*ours), theirs * present)


def assert_equal_outputs(config, mask="none", x=TOKENS, pool="", **kwargs):
    state = weights(config)
    actual = outputs(load(state, config, mask, enc_transform=pool, **kwargs), ragged(x))
    released = Released(state, config, ATTENTION_MASKS[mask], pool)(x)
    actual_logits, released_logits = ([out.logits, *out.intermediate] for out in (actual, released))
    for actual_t, released_t in zip(actual_logits, released_logits, strict=True):
        assert_close(actual_t, released_t)
    assert len(actual.attention) == config.n_layers_dec
    for t, step in enumerate(actual.attention):
        assert_equal_weights(step.feature_to_label, released.cross_attention[t], config.n_head)
        if config.no_dec_self_att:
            assert step.label_to_label is None
        else:
            assert_equal_weights(step.label_to_label, released.self_attention[t], config.n_head2)
    for layer, expected in zip(actual.feature_attention, released.encoder_attention, strict=True):
        present = (x > 0)[:, None, :, None]  # In the released code, padding attends too.
        assert_equal_weights(layer, expected, config.n_head, present)


@pytest.mark.parametrize("mask", ["none", "inveye", "prior"])
@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_equal_those_of_the_released_code(name, mask):
    vectors = np.random.default_rng(0).normal(size=(4, Config.num_inputs)).astype(np.float32)
    assert_equal_outputs(CONFIGS[name], mask, vectors if name == "vectors" else TOKENS)


@pytest.mark.parametrize(
    ("name", "mask", "options"),
    [
        ("bag", "eye", {}),
        *(("values wider than keys", "prior", {"backend": backend}) for backend in BACKENDS),
        *(("sequence", "none", {"x": TOKENS[1:2], "pool": pool}) for pool in ("mean", "sum")),
    ],
)
def test_outputs_with_further_options_equal_those_of_the_released_code(name, mask, options):
    assert_equal_outputs(CONFIGS[name], mask, **options)


def test_one_readout_for_all_labels_is_repeated():
    config = Config(share_weight=False, int_preds=False)
    state = weights(config)
    actual = outputs(load(state, config), ragged(TOKENS))
    embedding = state["decoder.tgt_word_emb.weight"]
    for label in range(L):
        # The released code takes the diagonal of an [L, 1] matrix, which is the first label only.
        state["decoder.tgt_word_emb.weight"] = embedding.roll(-label, dims=0)
        released = Released(state, config)(TOKENS)
        assert_close(actual.logits[:, label : label + 1], released.logits)
        for logits, expected in zip(actual.intermediate, released.intermediate, strict=True):
            assert_close(logits[:, label : label + 1], expected)  # These logits have no bias.


def test_a_graph_of_words_masks_encoder_attention_and_leaves_logits():
    config = Config(n_layers_enc=1)
    model, data = load(weights(config), config), Data(x=torch.tensor([2, 5, 3]))
    plain = outputs(model, Batch.from_data_list([data]))
    data.edge_index = torch.tensor([[1, 0], [0, 2]])  # 0 attends to 1, and 2 to 0.
    masked = outputs(model, Batch.from_data_list([data]))
    torch.testing.assert_close(masked.logits, plain.logits)
    edge_index, attention = masked.feature_attention[0]
    assert torch.equal(edge_index, data.edge_index)
    torch.testing.assert_close(attention, torch.ones(2, 4))


def test_the_readout_is_untied_and_gets_no_gradient_from_intermediate_logits():
    model = load(weights())
    assert not model.training
    assert not model.readout.tied
    assert model.readout.weight is not model.labels.embedding.weight
    model = ReleasedLaMP(MoleculeEncoder(8), fully_connected(5), heads=2)
    assert {conv.dropout for conv in model.features.convs} == {0.1}
    sum(logits.sum() for logits in model(molecules(4), return_intermediate=True)[1]).backward()
    assert model.readout.weight.grad is None
    assert model.readout.bias.grad is None
    assert model.labels.embedding.weight.grad is not None


@torch.no_grad()
def test_single_samples_give_the_logits_of_a_batch_and_empty_ones_are_finite():
    config = Config(max_length=6)
    model = load(weights(config), config)
    alone = torch.cat([model(ragged(TOKENS[i : i + 1])) for i in range(4)])
    torch.testing.assert_close(alone, model(ragged(TOKENS)), rtol=0.0, atol=1e-5)
    empty, full = Data(x=torch.empty(0, dtype=torch.long)), Data(x=torch.tensor([2, 5, 3]))
    logits = load(weights())(Batch.from_data_list([full, empty, full]))
    torch.testing.assert_close(logits[0], logits[2])
    assert logits.isfinite().all()


def test_double_precision_is_kept():
    state = {name: tensor.double() for name, tensor in weights().items()}
    logits = outputs(load(state), ragged(TOKENS)).logits
    expected = Released(state, Config())(TOKENS).logits
    torch.testing.assert_close(logits, torch.from_numpy(expected.copy()), rtol=0.0, atol=1e-12)


def test_label_names_travel_with_the_graph():
    for mask in ("none", "inveye", "prior"):
        graph = load(weights(), mask=mask, label_names=list("abcde")).labels.label_graph
        assert graph.label_names == list("abcde")


def test_arguments_are_copied_and_not_changed():
    state, adj = weights(Config(max_length=6)), ADJ.clone()
    model = load(state, mask="prior")
    assert torch.equal(adj, ADJ)
    logits = outputs(model, ragged(TOKENS)).logits
    for tensor in state.values():
        tensor.zero_()
    torch.testing.assert_close(outputs(model, ragged(TOKENS)).logits, logits)


def test_wrapped_and_nested_state_dicts_are_the_same_model(tmp_path):
    config = Config(n_head=2, n_head2=2, d_k=4, d_v=4)
    state, path = weights(config), tmp_path / "model.chkpt"
    wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
    options = {"n_head": 2, "label_mask": "inveye", "enc_transform": ""}
    settings = argparse.Namespace(**options, adj_matrix_lambda=0.0, cuda=True)
    checkpoint = {"model": wrapped, "settings": settings, "epoch": 3}
    torch.save(checkpoint, path)
    expected = outputs(load(state, config, "inveye"), ragged(TOKENS)).logits
    for source in (checkpoint, path, str(path)):
        model = load_lamp_checkpoint(source)  # Heads and mask come from the settings.
        torch.testing.assert_close(outputs(model, ragged(TOKENS)).logits, expected)
    # Arguments override the stored settings.
    assert load_lamp_checkpoint(path, "none").labels.label_graph.num_edges == L**2
    assert load_lamp_checkpoint(weights(), label_adj=ADJ).labels.label_graph.kind == "prior"
    assert load_lamp_checkpoint(weights(CONFIGS["one head"])).labels.feature_to_label[0].heads == 1


class Harmful:
    def __reduce__(self):
        return pathlib.Path, ("nowhere",)


def test_files_with_other_objects_are_refused(tmp_path):
    path = tmp_path / "model.chkpt"
    torch.save({"model": weights(), "settings": Harmful()}, path)
    message = r"of tensors and plain settings \(got .* or of another .*object"
    with pytest.raises(ValueError, match=message) as caught:
        load_lamp_checkpoint(path)
    assert "Weights only load failed" in str(caught.value.__cause__)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match=r"\(got list\)"):
        load_lamp_checkpoint(path)


# The authors used PyTorch before 1.6, which did not write zip archives.
@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.999])
def test_files_cut_short_are_refused(tmp_path, archive, fraction):
    path = tmp_path / "model.chkpt"
    torch.save(weights(), path, _use_new_zipfile_serialization=archive)
    load_lamp_checkpoint(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(ValueError, match=rf"'{path}' .* cut short.*copy it again"):
        load_lamp_checkpoint(path)


@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04", b"\x80\x02garbage", b"# A page\n"])
def test_other_files_and_folders_are_refused(tmp_path, content):
    path = tmp_path / "model.chkpt"
    for missing in (tmp_path, path):
        with pytest.raises(FileNotFoundError, match=rf"'state_dict' .*found no file '{missing}'\)"):
            load_lamp_checkpoint(missing)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"'{path}' .*\(got {len(content)} bytes"):
        load_lamp_checkpoint(path)


def changed(**tensors):
    """Returns a state dict with some tensors replaced, or removed if they are :obj:`None`."""
    state = {**weights(), **tensors}
    return {name: tensor for name, tensor in state.items() if tensor is not None}


LAYER, ONE = "decoder.layer_stack", torch.zeros(1)


@pytest.mark.parametrize(
    ("state", "options", "message"),
    [
        (None, {}, r"'state_dict' .* \(got NoneType\)"),
        ({"epoch": 3}, {}, r"to hold tensors.*\(got other values for epoch"),
        ({"weight": ONE}, {}, "got none of decoder.tgt_word_emb.weight"),
        ({"model": weights(), "settings": {"adj_matrix_lambda": 1.0}}, {}, "label_mask='prior'"),
        (weights(), {"label_mask": "prior"}, "label_mask='prior' and label_adj of shape None"),
        (weights(), {"label_mask": "none", "label_adj": ADJ}, r"'none' and label_adj of .*5, 5"),
        (weights(), {"label_adj": ADJ[:4, :4]}, r"'label_adj' of shape \[5, 5\] \(got \[4, 4\]\)"),
        (weights(), {"label_mask": "all"}, r"'label_mask' to be .* \(got 'all'\)"),
        (weights(), {"label_names": ["a"]}, r"5 'label_names' \(got 1\)"),
        (weights(), {"enc_transform": "max"}, r"'enc_transform' .* \(got 'max'\)"),
        (weights(), {"heads": 3}, r"'heads' of at least 2.*8 and 8 \(got heads=3\)"),
        (weights(), {"heads": 4, "heads2": 2}, "heads2=2"),
        (weights(CONFIGS["one head"]), {"heads": 2}, r"heads=1.*enc_attn.fc.weight' .*heads=2\)"),
        (weights(Config(n_head=1, n_head2=1, d_v=3)), {}, r"of the size 8 of a state \(got 3\)"),
        (changed(**{"encoder.brnn.weight_ih_l0": ONE}), {}, "-encoder rnn.*got encoder.brnn.we"),
        (changed(**{"encoder.conv1.weight": ONE}), {}, "-onehot.*got encoder.conv1.weight"),
        (changed(**{"decoder.rnn_layer_stack.0.x": ONE}), {}, "-decoder rnn_m.*got decoder.rnn"),
        (changed(**{"decoder.linear1.weight": ONE}), {}, "-decoder mlp.*got decoder.linear1"),
        (
            changed(**{f"{LAYER}.1.pos_ffn2.w_1.bias": None, "decoder.surprise": ONE}),
            {},
            r'(?s)Missing.*"labels.label_to_label.1.mlp.0.bias".*Unexpected.*"decoder.surprise"',
        ),
        (
            changed(**{f"{LAYER}.0.pos_ffn2.w_1.weight": torch.zeros(7, 8, 1)}),
            {},
            r"(?s)size mismatch for labels.label_to_label.0.mlp.0.weight.*\[7, 8\].*\[6, 8\]",
        ),
    ],
)
def test_errors_name_what_does_not_fit(state, options, message):
    with pytest.raises(ValueError, match=message):
        load_lamp_checkpoint(state, **options)


def test_inputs_longer_than_the_table_of_positions_are_refused():
    config = Config(max_length=5)
    with pytest.raises(ValueError, match="at most 5 words"):
        load(weights(config), config)(ragged(TOKENS))
