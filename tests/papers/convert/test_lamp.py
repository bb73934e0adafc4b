from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from tests.papers.convert.released import Config, Output, Released, random_state
from tg_mlc.models import LaMP
from tg_mlc.models.lamp import LaMPOutput
from tg_mlc.ops import to_dense_weights
from tg_mlc.papers.convert import load_lamp_checkpoint

L = Config.num_labels
#: Label 1 has no neighbour, label 2 weighs its only one below 1, and the graph is not symmetric.
ADJ = torch.zeros(L, L)
ADJ[0, 1] = ADJ[0, 4] = ADJ[3, 0] = ADJ[4, 4] = 1.0
ADJ[2, 3] = 0.5
ATTENDS = {
    "none": None,
    "inveye": np.eye(L, dtype=bool),
    "eye": ~np.eye(L, dtype=bool),
    "prior": (ADJ.numpy() != 0) | np.diag([False, True, True, False, False]),
}
TOKENS = np.array([[2, 5, 7, 3, 0, 0], [2, 4, 4, 9, 10, 3], [2, 3, 0, 0, 0, 0], [2, 6, 8, 3, 0, 0]])
CONFIGS = {
    "bag": Config(),
    "sequence": Config(max_length=6),
    "one step": Config(n_layers_dec=1, n_layers_enc=1, int_preds=False),
    "three steps": Config(n_layers_dec=3, n_layers_enc=3, max_length=9),
    "no encoder layer": Config(n_layers_enc=0),
    "one head": Config(n_head=1, n_head2=1, d_k=8, d_v=8),
    "one head of narrow keys": Config(n_head=1, n_head2=1, d_k=3, d_v=8),
    "other heads among labels": Config(n_head=4, n_head2=2),
    "heads that do not divide": Config(n_head=3, n_head2=3, d_k=2, d_v=2),
    "values of another size": Config(n_head=2, n_head2=2, d_k=3, d_v=5),
    "vectors": Config(vectors=True),
    "no attention among labels": Config(no_dec_self_att=True),
}


def weights(config: Config, seed: int = 0) -> dict[str, Tensor]:
    return {name: tensor * 0.5 for name, tensor in random_state(config, seed).items()}


def inputs(config: Config) -> NDArray[np.generic]:
    if config.vectors:
        return np.random.default_rng(0).normal(size=(4, config.num_inputs)).astype(np.float32)
    return TOKENS


def ragged(x: NDArray[np.generic]) -> Batch:
    rows = torch.from_numpy(x)
    if rows.is_floating_point():
        return Batch.from_data_list([Data(x=row.view(1, -1)) for row in rows])
    return Batch.from_data_list([Data(x=row[row != 0]) for row in rows])


def load(state: dict[str, Tensor], config: Config, mask: str = "none", **kwargs: object) -> LaMP:
    adj = ADJ if mask == "prior" else None
    return load_lamp_checkpoint(state, mask, adj, heads=config.n_head, **kwargs)  # type: ignore[arg-type]


@torch.no_grad()
def outputs(model: LaMP, batch: Batch) -> LaMPOutput:
    out = model(batch, return_intermediate=True, return_attention_weights=True)
    assert isinstance(out, LaMPOutput)
    return out


def assert_close(ours: Tensor, theirs: NDArray[np.float64]) -> None:
    torch.testing.assert_close(ours, torch.from_numpy(theirs.copy()).float(), rtol=0.0, atol=1e-5)


def by_sample(attention: NDArray[np.float64], heads: int) -> NDArray[np.float64]:
    """``[heads * B, L, S]`` to ``[B, heads, L, S]``."""
    return attention.reshape(heads, -1, *attention.shape[1:]).swapaxes(0, 1)


def assert_equal_outputs(ours: LaMPOutput, theirs: Output, config: Config, x: NDArray[np.generic]) -> None:
    assert_close(ours.logits, theirs.logits)
    assert len(ours.intermediate) == len(theirs.intermediate)
    for ours_t, theirs_t in zip(ours.intermediate, theirs.intermediate, strict=True):
        assert_close(ours_t, theirs_t)
    assert len(ours.attention) == config.n_layers_dec
    for t, step in enumerate(ours.attention):
        assert_close(to_dense_weights(*step.feature_to_label), by_sample(theirs.cross_attention[t], config.n_head))
        if step.label_to_label is None:
            assert config.no_dec_self_att
        else:
            assert_close(to_dense_weights(*step.label_to_label), by_sample(theirs.self_attention[t], config.n_head2))
    assert len(ours.feature_attention) == len(theirs.encoder_attention)
    for ours_i, theirs_i in zip(ours.feature_attention, theirs.encoder_attention, strict=True):
        present = (x > 0)[:, None, :, None]  # in padded batches the padding attends as well
        assert_close(to_dense_weights(*ours_i), by_sample(theirs_i, config.n_head) * present)


@pytest.mark.parametrize("mask", ["none", "inveye", "prior"])
@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_equal_those_of_the_released_code(name: str, mask: str) -> None:
    config = CONFIGS[name]
    state, x = weights(config), inputs(config)
    ours = outputs(load(state, config, mask), ragged(x))
    assert_equal_outputs(ours, Released(state, config, ATTENDS[mask])(x), config, x)


def test_labels_may_attend_to_all_but_themselves() -> None:
    config = Config()
    state = weights(config)
    ours = outputs(load(state, config, "eye"), ragged(TOKENS))
    assert_equal_outputs(ours, Released(state, config, ATTENDS["eye"])(TOKENS), config, TOKENS)


@pytest.mark.parametrize("backend", ["reference", "scatter", "dense"])
def test_every_backend_gives_these_outputs(backend: str) -> None:
    config = CONFIGS["values of another size"]
    state = weights(config)
    ours = outputs(load(state, config, "prior", backend=backend), ragged(TOKENS))
    assert_equal_outputs(ours, Released(state, config, ATTENDS["prior"])(TOKENS), config, TOKENS)


@pytest.mark.parametrize("pool", ["mean", "sum"])
def test_components_may_be_pooled(pool: str) -> None:
    config, tokens = Config(max_length=6), TOKENS[1:2]
    state = weights(config)
    ours = outputs(load(state, config, enc_transform=pool), ragged(tokens))
    theirs = Released(state, config, pool=pool)(tokens)
    assert_equal_outputs(ours, theirs, config, tokens)


def test_one_readout_for_all_labels_is_repeated() -> None:
    config = Config(share_weight=False, int_preds=False)
    state = weights(config)
    ours = outputs(load(state, config), ragged(TOKENS))
    embedding = state["decoder.tgt_word_emb.weight"]
    for label in range(L):
        # The released code takes the diagonal of a [L, 1] matrix, so that it gives the first label only.
        state["decoder.tgt_word_emb.weight"] = embedding.roll(-label, dims=0)
        theirs = Released(state, config)(TOKENS)
        assert_close(ours.logits[:, label : label + 1], theirs.logits)
        for ours_t, theirs_t in zip(ours.intermediate, theirs.intermediate, strict=True):
            assert_close(ours_t[:, label : label + 1], theirs_t)  # without the bias


def test_a_graph_among_the_words_masks_the_attention_of_the_encoder_only() -> None:
    config = Config(n_layers_enc=1)
    state = weights(config)
    model, data = load(state, config), Data(x=torch.tensor([2, 5, 3]))
    plain = outputs(model, Batch.from_data_list([data]))
    data.edge_index = torch.tensor([[1, 0], [0, 2]])  # 0 attends to 1, 2 to 0
    ours = outputs(model, Batch.from_data_list([data]))
    torch.testing.assert_close(ours.logits, plain.logits)
    edge_index, attention = ours.feature_attention[0]
    assert torch.equal(edge_index, data.edge_index)
    torch.testing.assert_close(attention, torch.ones(2, 4))


def test_the_readout_is_not_tied() -> None:
    model = load(weights(Config()), Config())
    assert not model.training
    assert not model.readout.tied
    assert model.readout.weight is not model.labels.embedding.weight


def test_single_samples_give_the_logits_of_a_batch() -> None:
    config = Config(max_length=6)
    model = load(weights(config), config)
    with torch.no_grad():
        together = model(ragged(TOKENS))
        alone = torch.cat([model(ragged(TOKENS[i : i + 1])) for i in range(4)])
    torch.testing.assert_close(alone, together, rtol=0.0, atol=1e-5)


def test_a_sample_without_tokens_has_finite_logits() -> None:
    empty, full = Data(x=torch.empty(0, dtype=torch.long)), Data(x=torch.tensor([2, 5, 3]))
    model = load(weights(Config()), Config())
    with torch.no_grad():
        logits = model(Batch.from_data_list([full, empty, full]))
        torch.testing.assert_close(logits[0], logits[2])
        assert logits.isfinite().all()


def test_double_precision_stays() -> None:
    config = Config()
    state = {name: tensor.double() for name, tensor in weights(config).items()}
    logits, expected = outputs(load(state, config), ragged(TOKENS)).logits, Released(state, config)(TOKENS).logits
    torch.testing.assert_close(logits, torch.from_numpy(expected.copy()), rtol=0.0, atol=1e-12)


def test_label_names_travel_with_the_graph() -> None:
    names = ["a", "b", "c", "d", "e"]
    for mask in ("none", "inveye", "prior"):
        assert load(weights(Config()), Config(), mask, label_names=names).labels.label_graph.label_names == names
    with pytest.raises(ValueError, match=r"'label_names' to hold 5 names \(got 1\)"):
        load(weights(Config()), Config(), label_names=["a"])


def test_the_state_dict_is_copied() -> None:
    state = weights(Config(max_length=6))
    model = load(state, Config())
    before = outputs(model, ragged(TOKENS)).logits
    for tensor in state.values():
        tensor.zero_()
    torch.testing.assert_close(outputs(model, ragged(TOKENS)).logits, before)


def test_a_single_head_is_recognised() -> None:
    config = CONFIGS["one head"]
    assert load_lamp_checkpoint(weights(config)).labels.feature_to_label[0].heads == 1
    with pytest.raises(ValueError, match=r"Expected heads=1, because .*enc_attn.fc.weight' is missing \(got heads=2\)"):
        load_lamp_checkpoint(weights(config), heads=2)


def test_wrapped_and_nested_state_dicts_are_the_same_model(tmp_path: pathlib.Path) -> None:
    config = Config(n_head=2, n_head2=2, d_k=4, d_v=4)
    state = weights(config)
    wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
    settings = argparse.Namespace(n_head=2, label_mask="inveye", enc_transform="", adj_matrix_lambda=0.0, cuda=True)
    checkpoint = {"model": wrapped, "settings": settings, "epoch": 3}
    path = tmp_path / "model.chkpt"
    torch.save(checkpoint, path)
    expected = outputs(load(state, config, "inveye"), ragged(TOKENS)).logits
    for source in (checkpoint, path, str(path)):
        model = load_lamp_checkpoint(source)  # heads and mask come from the settings
        torch.testing.assert_close(outputs(model, ragged(TOKENS)).logits, expected)
    model = load_lamp_checkpoint(path, "none")  # arguments come first
    assert model.labels.label_graph.num_edges == L**2


class Harmful:
    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return pathlib.Path, ("nowhere",)


def test_files_with_other_objects_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.chkpt"
    torch.save({"model": weights(Config()), "settings": Harmful()}, path)
    with pytest.raises(ValueError, match=r"of tensors and plain settings \(got .* hold other objects") as caught:
        load_lamp_checkpoint(path)
    assert "Weights only load failed" in str(caught.value.__cause__)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match=r"to hold a dict \(got list\)"):
        load_lamp_checkpoint(path)


@pytest.mark.parametrize("archive", [True, False])  # PyTorch before 1.6, which the authors had, wrote none
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.5, 0.999])
def test_files_cut_short_are_refused(tmp_path: pathlib.Path, archive: bool, kept: float) -> None:
    path = tmp_path / "model.chkpt"
    torch.save(weights(Config()), path, _use_new_zipfile_serialization=archive)
    load_lamp_checkpoint(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match=rf"'{path}' to be a whole checkpoint .* cut short.*copy it again"):
        load_lamp_checkpoint(path)


@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04", b"\x80\x02garbage", b"# A page\n"])
def test_files_of_something_else_are_refused(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "model.chkpt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"'{path}' to be a whole checkpoint .*\(got {len(content)} bytes"):
        load_lamp_checkpoint(path)


def test_what_is_no_file_is_refused(tmp_path: pathlib.Path) -> None:
    for path in (tmp_path, tmp_path / "none.chkpt"):
        with pytest.raises(FileNotFoundError, match=rf"'state_dict' to be the path .* \(found no file '{path}'\)"):
            load_lamp_checkpoint(path)
    with pytest.raises(ValueError, match=r"'state_dict' to be a dict or the path of a checkpoint \(got NoneType\)"):
        load_lamp_checkpoint(None)  # type: ignore[arg-type]


def test_a_prior_graph_needs_its_matrix_and_no_other_mask_takes_one() -> None:
    state = weights(Config())
    with pytest.raises(ValueError, match=r"label_mask='prior' and label_adj of shape None"):
        load_lamp_checkpoint(state, "prior")
    with pytest.raises(ValueError, match=r"label_mask='none' and label_adj of shape \[5, 5\]"):
        load_lamp_checkpoint(state, "none", ADJ)
    with pytest.raises(ValueError, match=r"'label_adj' of shape \[5, 5\] \(got \[4, 4\]\)"):
        load_lamp_checkpoint(state, "prior", ADJ[:4, :4])
    with pytest.raises(ValueError, match=r"'label_mask' to be .* \(got 'all'\)"):
        load_lamp_checkpoint(state, "all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="label_mask='prior'"):
        load_lamp_checkpoint({"model": state, "settings": {"adj_matrix_lambda": 1.0}})
    assert load_lamp_checkpoint(state, label_adj=ADJ).labels.label_graph.kind == "prior"


def test_the_prior_given_stays_as_it_is() -> None:
    before = ADJ.clone()
    load_lamp_checkpoint(weights(Config()), "prior", ADJ)
    assert torch.equal(ADJ, before)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("encoder.brnn.weight_ih_l0", "-encoder rnn"),
        ("encoder.conv1.weight", "-onehot"),
        ("decoder.rnn_layer_stack.0.weight_ih_l0", "-decoder rnn_m"),
        ("decoder.linear1.weight", "-decoder mlp"),
    ],
)
def test_other_models_of_the_released_code_are_refused_by_name(name: str, what: str) -> None:
    with pytest.raises(ValueError, match=f"{what}.*not supported.*'{name}'"):
        load_lamp_checkpoint({**weights(Config()), name: torch.zeros(1)})


def test_missing_and_unexpected_names_are_listed() -> None:
    state = weights(Config())
    del state["decoder.layer_stack.1.pos_ffn2.w_1.bias"]
    state["decoder.surprise"] = torch.zeros(1)
    with pytest.raises(
        ValueError, match=r'(?s)Missing.*"labels.label_to_label.1.mlp.0.bias".*Unexpected.*"decoder.surprise"'
    ):
        load_lamp_checkpoint(state)
    with pytest.raises(ValueError, match=r"it lacks 'decoder.tgt_word_emb.weight'"):
        load_lamp_checkpoint({"weight": torch.zeros(1)})
    with pytest.raises(ValueError, match=r"to hold tensors.*\(got epoch"):
        load_lamp_checkpoint({"epoch": 3})


def test_wrong_shapes_and_heads_are_named() -> None:
    state = weights(Config())
    with pytest.raises(ValueError, match=r"'heads' to be at least 2.*8 and 8 \(got heads=3\)"):
        load_lamp_checkpoint(state, heads=3)
    with pytest.raises(ValueError, match=r"heads2=2"):
        load_lamp_checkpoint(state, heads=4, heads2=2)
    state["decoder.layer_stack.0.pos_ffn2.w_1.weight"] = torch.zeros(7, 8, 1)
    with pytest.raises(
        ValueError, match=r"(?s)size mismatch for labels.label_to_label.0.mlp.0.weight.*\[7, 8\].*\[6, 8\]"
    ):
        load_lamp_checkpoint(state)
    config = replace(Config(), n_head=1, n_head2=1, d_v=3)
    with pytest.raises(ValueError, match=r"to be as wide as a state, 8 \(got 3\)"):
        load_lamp_checkpoint(weights(config))
    with pytest.raises(ValueError, match=r"'enc_transform' to be '', 'mean' or 'sum' \(got 'max'\)"):
        load_lamp_checkpoint(weights(Config()), enc_transform="max")  # type: ignore[arg-type]


def test_inputs_longer_than_the_table_of_positions_are_refused() -> None:
    config = Config(max_length=5)
    with pytest.raises(ValueError, match="at most 5 words"):
        load(weights(config), config)(ragged(TOKENS))
