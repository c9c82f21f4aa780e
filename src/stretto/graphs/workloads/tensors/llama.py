"""Doppler's LLAMA-BLOCK and LLAMA-LAYER: decoder blocks in the shapes of LLaMA-7B, cut along three axes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from stretto.core import argument_checks as checks
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput
from stretto.graphs.workloads.tensors.ffnn_forward import softmax
from stretto.graphs.workloads.tensors.sharding import Costs, Program, ShardedTensor, with_fields


@dataclass(frozen=True)
class LlamaShape:
    """Sizes of a model, and how often each axis is cut.

    Attributes
    ----------
    num_layers
        Blocks one after the other; 100 of them make 20,000 operations.
    """

    dim: int = 4096
    num_heads: int = 32
    hidden: int = 11008
    num_layers: int = 1
    token_parts: int = 2
    feature_parts: int = 2
    inner_parts: int = 1

    def __post_init__(self) -> None:
        checks.at_least(1, **asdict(self))
        if self.dim % (2 * self.num_heads):
            raise InvalidInput(
                f"{self.dim} must be a multiple of {2 * self.num_heads}, twice the number of heads", field="dim"
            )

    @property
    def head_dim(self) -> int:
        return self.dim // self.num_heads

    @property
    def cut(self) -> str:
        return f"{self.token_parts}x{self.feature_parts}x{self.inner_parts}"


@with_fields(shape=LlamaShape, costs=Costs)
def llama_block(tokens: int = 4096, *, shape: LlamaShape, costs: Costs) -> TaskGraph:
    """Doppler's LLAMA-BLOCK: attention and gated feed-forward of a decoder block, with true FLOPs and bytes.

    Activations are tokens x dim, attention scores num_heads x tokens x tokens, the feed-forward part tokens x hidden
    twice. Tokens are cut into token_parts; heads, hidden units and columns into feature_parts; what a product
    contracts, and the keys of the attention, into inner_parts. Weights, the table of rotations and the first
    activations are inputs, not tasks. Parts 2, 2, 1 are for 4
    devices (194 operations and 240 edges; the paper's file has 182 and 234), 2, 2, 2 for 8 (302 and 396; 302 and 398).

    Parameters
    ----------
    tokens
        Batch times sequence length, as one sequence.
    shape, costs
        Their fields are keywords: ``dim=``, ``flops_per_s=``, ``paper_costs=`` and so on.
    """
    checks.at_least(1, tokens=tokens)
    program = Program(f"llama-block-{shape.num_layers}x{shape.cut}", costs)
    decoder = _Decoder(program, shape, program.input(t=tokens, n=shape.head_dim // 2), None)
    decoder.layers(tokens)
    return program.graph()


@with_fields(shape=LlamaShape, costs=Costs)
def llama_layer(tokens: int = 4096, *, vocab: int = 32_000, shape: LlamaShape, costs: Costs) -> TaskGraph:
    """Doppler's LLAMA-LAYER: masked decoder blocks, the last norm and one token's logits, with true FLOPs and bytes.

    As ``llama-block``; besides, it makes the causal mask (tokens x tokens) and selects the rotations, masks the scores,
    normalises the last activations and multiplies the last token with a dim x vocab matrix, whose columns are cut into
    the product of all parts. Parts 2, 2, 1 are for 4 devices (229 operations and 284 edges, those of the paper's file),
    2, 2, 2 for 8 (351 and 458; 367 and 470).

    Parameters
    ----------
    vocab
        Tokens that the model knows; the other parameters are those of :func:`llama_block`.
    """
    checks.at_least(1, tokens=tokens, vocab=vocab)
    program = Program(f"llama-layer-{shape.num_layers}x{shape.cut}", costs)
    table = program.cut("rotations", "select", program.input(t=tokens, n=shape.head_dim // 2), {})
    rows = {"t": shape.token_parts}
    mask = program.cut("mask", "fill", program.input(t=tokens, k=tokens), rows | {"k": shape.inner_parts})
    decoder = _Decoder(program, shape, table, mask)
    x = decoder.norm("last_norm", decoder.layers(tokens), rows, rows)
    last = program.cut("last_token", "select", x, {}, t=(tokens - 1, tokens))
    last = program.cut("squeeze", "squeezer", last, {})
    parts = {"v": shape.token_parts * shape.feature_parts * shape.inner_parts}
    program.apply("logits", "gemm", [last, program.input(d=shape.dim, v=vocab)], "tv", parts, formed=parts)
    return program.graph()


class _Decoder:
    """Adds blocks to a program. Axes: t tokens, d features, h heads, e within a head, k keys, f hidden units."""

    def __init__(self, program: Program, shape: LlamaShape, table: ShardedTensor, mask: ShardedTensor | None) -> None:
        self.program = program
        self.shape = shape
        self.table = table
        self.mask = mask
        self.t, self.f, self.i = shape.token_parts, shape.feature_parts, shape.inner_parts

    def layers(self, tokens: int) -> ShardedTensor:
        """Add all blocks and return the activations of the last."""
        x = self.program.input(t=tokens, d=self.shape.dim)
        for layer in range(self.shape.num_layers):
            x = self._attention(f"l{layer}_attn", x)
            x = self._feed_forward(f"l{layer}_ffn", x)
        return x

    def norm(self, name: str, x: ShardedTensor, parts: dict[str, int], out_parts: dict[str, int]) -> ShardedTensor:
        """Add a root-mean-square norm; the statistics may be cut finer than the result."""
        apply, rows = self.program.apply, {"t": self.t}
        x = apply(f"{name}_cast", "elementwise", [x], "td", parts, flops_per_point=0)
        square = apply(f"{name}_square", "elementwise", [x], "td", parts)
        mean = apply(f"{name}_sum", "reduce", [square], "t", parts, contraction="sum", formed=rows)
        mean = apply(f"{name}_mean", "elementwise", [mean], "t", rows)
        root = apply(f"{name}_root", "elementwise", [mean], "t", rows)
        x = apply(f"{name}_scale", "elementwise", [x, root], "td", out_parts)
        x = apply(f"{name}_back", "elementwise", [x], "td", out_parts, flops_per_point=0)
        return apply(f"{name}_weight", "elementwise", [x], "td", out_parts)

    def _attention(self, name: str, x: ShardedTensor) -> ShardedTensor:
        program, shape = self.program, self.shape
        wide = {"t": self.t, "d": min(self.f * self.i, shape.dim)}
        normal = self.norm(f"{name}_norm", x, wide, {"t": self.t, "d": self.f})
        query = self._rotate(f"{name}_q", self._project(f"{name}_q", normal, {"t": self.t, "h": self.f}))
        by_key = {"t": self.i, "h": self.f}
        key = self._rotate(f"{name}_k", self._project(f"{name}_k", normal, by_key)).renamed(t="k")
        value = self._project(f"{name}_v", normal, by_key).renamed(t="k")
        weight = self._scores(name, query, key)
        cells = {"h": self.f, "t": self.t, "k": self.i}
        mixed = program.apply(f"{name}_mix", "gemm", [weight, value], "the", cells, formed={"t": self.t, "h": self.f})
        out = program.input(h=shape.num_heads, e=shape.head_dim, d=shape.dim)
        rows = {"t": self.t, "d": self.i}
        result = program.apply(f"{name}_out", "gemm", [mixed, out], "td", rows | {"h": self.f}, formed=rows)
        return program.apply(f"{name}_add", "elementwise", [result, x], "td", rows)

    def _project(self, name: str, x: ShardedTensor, formed: dict[str, int]) -> ShardedTensor:
        shape = self.shape
        weight = self.program.input(d=shape.dim, h=shape.num_heads, e=shape.head_dim)
        parts = {"t": self.t, "h": self.f, "d": self.i}
        return self.program.apply(name, "gemm", [x, weight], "the", parts, formed=formed)

    def _rotate(self, name: str, x: ShardedTensor) -> ShardedTensor:
        """Turn pairs of features by an angle of their position: as complex numbers, and back."""
        apply, shape, parts = self.program.apply, self.shape, x.parts
        x = apply(f"{name}_cast", "elementwise", [x], "the", parts, flops_per_point=0)
        half = ShardedTensor({**x.sizes, "e": shape.head_dim // 2}, x.parts, x.blocks).renamed(e="n")
        pairs = apply(f"{name}_complex", "complexer", [half], "thn", parts, flops_per_point=0)
        turned = apply(f"{name}_turn", "elementwise", [pairs, self.table], "thn", parts, flops_per_point=6)
        whole = ShardedTensor(x.sizes, x.parts, turned.blocks)
        real = apply(f"{name}_real", "complexer", [whole], "the", parts, flops_per_point=0)
        return apply(f"{name}_back", "elementwise", [real], "the", parts, flops_per_point=0)

    def _scores(self, name: str, query: ShardedTensor, key: ShardedTensor) -> ShardedTensor:
        apply, parts = self.program.apply, {"h": self.f, "t": self.t, "k": self.i}
        scores = apply(f"{name}_scores", "gemm", [query, key], "htk", parts, formed=parts)
        scores = apply(f"{name}_scale", "elementwise", [scores], "htk", parts)
        if self.mask is not None:
            scores = apply(f"{name}_mask", "elementwise", [scores, self.mask], "htk", parts)
        scores = apply(f"{name}_cast", "elementwise", [scores], "htk", parts, flops_per_point=0)
        weight = softmax(self.program, f"{name}_softmax", scores, "ht", "k", parts)
        return apply(f"{name}_back", "elementwise", [weight], "htk", parts, flops_per_point=0)

    def _feed_forward(self, name: str, x: ShardedTensor) -> ShardedTensor:
        apply, program, shape = self.program.apply, self.program, self.shape
        rows, cells = {"t": self.t}, {"t": self.t, "f": self.f}
        normal = self.norm(f"{name}_norm", x, {"t": self.t, "d": self.i}, rows)
        up, gate = (
            apply(
                f"{name}_{what}",
                "gemm",
                [normal, program.input(d=shape.dim, f=shape.hidden)],
                "tf",
                cells | {"d": self.i},
                formed=cells,
            )
            for what in ("up", "gate")
        )
        gate = apply(f"{name}_silu", "elementwise", [gate], "tf", cells)
        inner = apply(f"{name}_times", "elementwise", [up, gate], "tf", cells)
        down = program.input(f=shape.hidden, d=shape.dim)
        result = apply(f"{name}_down", "gemm", [inner, down], "td", cells | {"d": self.i}, formed=rows)
        return apply(f"{name}_add", "elementwise", [result, x], "td", rows)
