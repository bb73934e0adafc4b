"""Attention over compressed edges by sampled and sparse matrix products, one head of one sample at a time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.index import ptr2index

from tg_mlc.ops.kernels.dropout_torch import kept
from tg_mlc.ops.kernels.graph import Graph, Options


def forward(query: Tensor, key: Tensor, value: Tensor, graph: Graph, options: Options) -> tuple[Tensor, Tensor]:
    """The output ``[N, heads, C_v]``, and the logarithm of every row's sum ``[groups, rows]``."""
    out = query.new_empty(query.size(0), query.size(1), value.size(2))
    if 0 in (graph.num_edges, query.numel(), out.numel()):
        return out.zero_(), query.new_zeros(query.size(0) * query.size(1))
    work = _Work(graph, options, query.size(0) // graph.num_queries)
    score = work.with_bias(work.products(query, key, options.scale))
    lse = work.log_sum_exp(score)
    weight = (score - work.per_edge(lse)).exp_()
    work.sums(weight * work.kept(weight), value, out)
    return out, lse


def backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, lse: Tensor, graph: Graph, options: Options
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, value and bias, the last ``[num_edges, heads]`` or empty."""
    heads = query.size(1)
    grads = [query.new_empty(tensor.shape) for tensor in (query, key, value)]
    if 0 in (graph.num_edges, query.numel(), value.numel()):
        no_bias = query.new_zeros(0 if options.bias is None else graph.num_edges, heads)
        return grads[0].zero_(), grads[1].zero_(), grads[2].zero_(), no_bias
    work = _Work(graph, options, query.size(0) // graph.num_queries)
    score = work.with_bias(work.products(query, key, options.scale))
    weight = (score - work.per_edge(lse.view(-1, graph.num_queries))).exp_()
    kept = work.kept(weight)
    grad_score = work.products(grad, value, 1.0).mul_(kept)
    total = work.row_sums(weight * grad_score)
    grad_score = grad_score.sub_(work.per_edge(total)).mul_(weight)
    work.sums(grad_score * options.scale, key, grads[0])
    work.sums(grad_score * options.scale, query, grads[1], by_key=True)
    work.sums(weight * kept, grad, grads[2], by_key=True)
    if options.bias is None:
        return grads[0], grads[1], grads[2], query.new_zeros(0, heads)
    grad_bias = grad_score.view(-1, heads, graph.num_edges).sum(dim=0).t().contiguous()
    return grads[0], grads[1], grads[2], grad_bias


@dataclass
class _Work:
    """One pass over all groups: a head of a sample each."""

    graph: Graph
    options: Options
    num_samples: int

    def products(self, x: Tensor, y: Tensor, scale: float) -> Tensor:
        """The scaled dot products of both ends of every edge, ``[groups, num_edges]``."""
        graph = self.graph
        size = (graph.num_queries, graph.num_keys)
        sampled = _matrix(graph.ptr, graph.index, x.new_zeros(graph.num_edges), size)
        out = x.new_empty(self.num_samples * x.size(1), graph.num_edges)
        for group, (rows, cols) in enumerate(zip(self._groups(x), self._groups(y), strict=True)):
            out[group] = torch.sparse.sampled_addmm(sampled, rows, cols.t(), beta=0.0, alpha=scale).values()
        return out

    def sums(self, weight: Tensor, y: Tensor, out: Tensor, *, by_key: bool = False) -> None:
        """Writes the weighted sums over the edges of every row."""
        graph = self.graph
        ptr, index, size = graph.ptr, graph.index, (graph.num_queries, graph.num_keys)
        if by_key:
            ptr, index, size, weight = graph.col_ptr, graph.col_index, size[::-1], weight[:, graph.col_order]
        for values, rows, target in zip(weight, self._groups(y), self._groups(out), strict=True):
            target.copy_(_matrix(ptr, index, values, size) @ rows)

    def with_bias(self, score: Tensor) -> Tensor:
        """Adds the bias of every edge, if there is any."""
        if self.options.bias is not None:
            score.view(self.num_samples, -1, score.size(1)).add_(self.options.bias.t())
        return score

    def log_sum_exp(self, score: Tensor) -> Tensor:
        """The logarithm of every row's sum of exponentials, ``[groups, rows]``; of an empty row anything finite."""
        rows = self._rows().expand_as(score)
        highest = score.new_zeros(score.size(0), self.graph.num_queries)
        highest.scatter_reduce_(1, rows, score, "amax", include_self=False)
        highest.masked_fill_(highest == -torch.inf, 0.0)
        total = self.row_sums((score - highest[:, self._rows()]).exp_())
        return highest + total.clamp_(min=torch.finfo(score.dtype).tiny).log_()

    def row_sums(self, values: Tensor) -> Tensor:
        """The sum over the edges of every row, ``[groups, rows]``."""
        return values.new_zeros(values.size(0), self.graph.num_queries).index_add_(1, self._rows(), values)

    def per_edge(self, values: Tensor) -> Tensor:
        """Brings ``[groups, rows]`` to ``[groups, num_edges]``."""
        return values[:, self._rows()]

    def kept(self, weight: Tensor) -> Tensor | float:
        """Factors of dropout on weights, the same in both passes."""
        dropout_p = self.options.dropout_p
        if dropout_p == 0.0:
            return 1.0
        keep, factor = kept(weight, dropout_p, torch.Generator(weight.device).manual_seed(self.options.seed))
        return keep.to(weight.dtype).mul_(factor)

    def _rows(self) -> Tensor:
        rows: Tensor = ptr2index(self.graph.ptr, output_size=self.graph.num_edges)
        return rows

    def _groups(self, x: Tensor) -> list[Tensor]:
        """The rows ``[N, C]`` of every head of every sample."""
        by_group = x.view(self.num_samples, -1, *x.shape[1:]).transpose(1, 2)
        return [rows for heads in by_group for rows in heads]


def _matrix(ptr: Tensor, index: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(ptr, index, values, size, check_invariants=False)
