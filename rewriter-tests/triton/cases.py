"""The cases: each a kernel, its arguments, and what numpy says that it leaves in its outputs."""

from math import erf

import numpy as np

import kernels as k
from case import (BRAIN, CASES, DOUBLE, EXACT, HALF, SINGLE, Case, Pointers, Typed, case, fp8, integers, random,  # noqa
                  zeros)
from narrow import decode, encode, from_bf16, philox, to_bf16


@case("vector_add")
def _(arch, name):
    x, y = random(1, 1000), random(2, 1000)
    return Case(k.vector_add, (4, 1, 1), dict(x=x, y=y, out=zeros(1000), n=1000, BLOCK=256), dict(out=(x + y, EXACT)))


@case("relu")
def _(arch, name):
    x = random(3, 777, type=np.float16)
    return Case(k.relu, (4, 1, 1), dict(x=x, out=zeros(777, type=np.float16), n=777, BLOCK=256),
                dict(out=(np.maximum(x, 0), EXACT)))


@case("gelu")
def _(arch, name):
    x = random(4, 700)
    expected = x * 0.5 * (1 + np.array([erf(v * 0.7071067811865475) for v in x], dtype=np.float32))
    return Case(k.gelu, (3, 1, 1), dict(x=x, out=zeros(700), n=700, BLOCK=256), dict(out=(expected, SINGLE)))


@case("where_masks")
def _(arch, name):
    x, y = integers(5, -50, 50, 500), integers(6, -50, 50, 500)
    at = np.arange(500)
    b = np.where(x > 0, y, 7)
    expected = np.where((x > b) & (at % 3 != 0), x - b, np.where(x < 0, -x, b))
    expected = np.where(at % 5 != 4, expected, 0)
    return Case(k.where_masks, (2, 1, 1), dict(x=x, y=y, out=zeros(500, type=np.int32), n=500, BLOCK=256),
                dict(out=(expected.astype(np.int32), EXACT)))


@case("softmax")
def _(arch, name):
    x = random(7, 6, 200) * 4
    e = np.exp((x - x.max(axis=1, keepdims=True)).astype(np.float64))
    return Case(k.softmax, (6, 1, 1), dict(x=x, out=zeros(6, 200), stride=200, cols=200, BLOCK=256),
                dict(out=(e / e.sum(axis=1, keepdims=True), SINGLE)))


def normalised(x, eps):
    x = x.astype(np.float64)
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return mean, 1 / np.sqrt(variance + eps)


@case("layernorm_forward")
def _(arch, name):
    x, w, b = random(8, 5, 300) + 1, random(9, 300), random(10, 300)
    mean, rstd = normalised(x, 1e-5)
    args = dict(x=x, weight=w, bias=b, out=zeros(5, 300), mean_out=zeros(5), rstd_out=zeros(5), stride=300, cols=300,
                eps=1e-5, BLOCK=128)
    return Case(k.layernorm_forward, (5, 1, 1), args,
                dict(out=((x - mean) * rstd * w + b, SINGLE), mean_out=(mean[:, 0], SINGLE),
                     rstd_out=(rstd[:, 0], SINGLE)))


@case("layernorm_backward")
def _(arch, name):
    rows, cols, group = 6, 200, 2
    x, dy, w = random(11, rows, cols), random(12, rows, cols), random(13, cols)
    mean, rstd = normalised(x, 1e-5)
    hat = (x - mean) * rstd
    wdy = w * dy.astype(np.float64)
    dx = (wdy - hat * (hat * wdy).mean(axis=1, keepdims=True) - wdy.mean(axis=1, keepdims=True)) * rstd
    dw = np.stack([(dy * hat)[g::group].sum(axis=0) for g in range(group)])
    db = np.stack([dy.astype(np.float64)[g::group].sum(axis=0) for g in range(group)])
    args = dict(dx=zeros(rows, cols), dy=dy, dw=zeros(group, cols), db=zeros(group, cols), x=x, w=w,
                mean=mean[:, 0].astype(np.float32), rstd=rstd[:, 0].astype(np.float32),
                locks=zeros(2 * group, type=np.int32), stride=cols, cols=cols, GROUP=group, BLOCK=256)
    return Case(k.layernorm_backward, (rows, 1, 1), args,
                dict(dx=(dx, SINGLE), dw=(dw, SINGLE), db=(db, SINGLE),
                     locks=(np.array([0, 0, 1, 1], dtype=np.int32), EXACT)))


@case("rmsnorm")
def _(arch, name):
    x, w = random(14, 4, 500, type=np.float16), random(15, 500, type=np.float16)
    value = x.astype(np.float64)
    expected = value / np.sqrt((value * value).mean(axis=1, keepdims=True) + 1e-6) * w
    return Case(k.rmsnorm, (4, 1, 1),
                dict(x=x, weight=w, out=zeros(4, 500, type=np.float16), stride=500, cols=500, eps=1e-6, BLOCK=512),
                dict(out=(expected, HALF)), warps=8)


def matmul(arch, a, b, out, expected, tolerance, acc, stages=2, block=(32, 32, 32), warps=4, options=None):
    import triton.language as tl
    bits = [v.bits if isinstance(v, Typed) else v for v in (a, b)]
    (m, inner), n = bits[0].shape, bits[1].shape[1]
    bm, bn, bk = block
    args = dict(a=a, b=b, c=out, M=m, N=n, K=inner, stride_a=inner, stride_b=n, stride_c=n, ACC=getattr(tl, acc), BM=bm,
                BN=bn, BK=bk)
    return Case(k.matmul, (-(-m // bm), -(-n // bn), 1), args, dict(c=(expected, tolerance)), warps, stages,
                options or {})


@case("matmul_fp16", "matmul_fp16_stages_1", "matmul_fp16_stages_2", "matmul_fp16_stages_3", "matmul_fp16_one_wave",
      "matmul_fp16_odd_sizes", "matmul_fp16_large_tile")
def _(arch, name):
    m, n, inner = (50, 70, 90) if name.endswith("odd_sizes") else (64, 64, 160)
    block = (32, 32, 32)
    if name.endswith("large_tile"):
        m, n, inner, block = 128, 128, 128, (128, 128, 64)
    a, b = random(16, m, inner, type=np.float16), random(17, inner, n, type=np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    stages = int(name[-1]) if name[-1].isdigit() and "stages" in name else 2
    return matmul(arch, a, b, zeros(m, n, type=np.float16), expected, HALF, "float32", stages, block,
                  1 if "one_wave" in name else 4)


@case("matmul_bf16")
def _(arch, name):
    a, b = to_bf16(random(18, 64, 96)), to_bf16(random(19, 96, 64))
    expected = from_bf16(a).astype(np.float64) @ from_bf16(b).astype(np.float64)
    return matmul(arch, Typed(a, "bf16"), Typed(b, "bf16"), Typed(zeros(64, 64, type=np.uint16), "bf16"), expected,
                  BRAIN, "float32")


@case("matmul_fp32")
def _(arch, name):
    a, b = random(20, 64, 64), random(21, 64, 64)
    # tl.dot takes fp32 as tf32 where a target has it (gfx942): 10 bits of mantissa.
    tolerance = 4e-3 if arch == "gfx942" else SINGLE
    return matmul(arch, a, b, zeros(64, 64), a.astype(np.float64) @ b.astype(np.float64), tolerance, "float32")


@case("matmul_fp64")
def _(arch, name):
    a, b = random(22, 32, 32, type=np.float64), random(23, 32, 32, type=np.float64)
    return matmul(arch, a, b, zeros(32, 32, type=np.float64), a @ b, DOUBLE, "float64", block=(16, 16, 16))


@case("matmul_fp8", "matmul_bf8")
def _(arch, name):
    kind = fp8(arch)[name == "matmul_bf8"]
    a, b = encode(kind, random(24, 64, 128)), encode(kind, random(25, 128, 64))
    expected = decode(kind, a).astype(np.float64) @ decode(kind, b).astype(np.float64)
    return matmul(arch, Typed(a, kind), Typed(b, kind), zeros(64, 64), expected, SINGLE, "float32", block=(32, 32, 64))


@case("matmul_int8")
def _(arch, name):
    a, b = integers(26, -128, 128, 64, 128, type=np.int8), integers(27, -128, 128, 128, 64, type=np.int8)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    return matmul(arch, a, b, zeros(64, 64, type=np.int32), expected, EXACT, "int32", block=(32, 32, 64))


@case("matmul_split_k")
def _(arch, name):
    a, b = random(28, 32, 256, type=np.float16), random(29, 256, 32, type=np.float16)
    args = dict(a=a, b=b, c=zeros(32, 32), M=32, N=32, K=256, BM=32, BN=32, BK=32, SPLIT=4)
    return Case(k.matmul_split_k, (1, 1, 4), args, dict(c=(a.astype(np.float64) @ b.astype(np.float64), SINGLE)))


@case("matmul_batched")
def _(arch, name):
    a, b = random(30, 3, 32, 64, type=np.float16), random(31, 3, 64, 32, type=np.float16)
    args = dict(a=a, b=b, c=zeros(3, 32, 32, type=np.float16), M=32, N=32, K=64, BM=32, BN=32, BK=32)
    return Case(k.matmul_batched, (1, 1, 3), args, dict(c=(a.astype(np.float64) @ b.astype(np.float64), HALF)))


@case("matmul_grouped")
def _(arch, name):
    sizes = [(32, 64, 32), (50, 32, 64), (16, 40, 96)]
    more, expected = {}, {}
    for g, (m, n, inner) in enumerate(sizes):
        a, b = random(32 + g, m, inner, type=np.float16), random(42 + g, inner, n, type=np.float16)
        more |= {f"a{g}": a, f"b{g}": b, f"c{g}": zeros(m, n, type=np.float16)}
        expected[f"c{g}"] = (a.astype(np.float64) @ b.astype(np.float64), HALF)
    args = {f"addresses_{w}": Pointers([f"{w}{g}" for g in range(3)]) for w in "abc"}
    args |= dict(sizes=np.array(sizes, dtype=np.int32), groups=3, PROGRAMS=3, BM=32, BN=32, BK=32)
    return Case(k.matmul_grouped, (3, 1, 1), args, expected, more=more)


@case("matmul_persistent")
def _(arch, name):
    a, b = random(52, 96, 64, type=np.float16), random(53, 64, 96, type=np.float16)
    args = dict(a=a, b=b, c=zeros(96, 96, type=np.float16), M=96, N=96, K=64, PROGRAMS=4, BM=32, BN=32, BK=32)
    return Case(k.matmul_persistent, (4, 1, 1), args, dict(c=(a.astype(np.float64) @ b.astype(np.float64), HALF)))


@case("attention", "attention_causal")
def _(arch, name):
    heads, length, width, causal = 2, 128, 64, name.endswith("causal")
    q, key, v = (random(54 + i, heads, length, width, type=np.float16) for i in range(3))
    scores = np.einsum("hid,hjd->hij", q.astype(np.float64), key.astype(np.float64)) * 0.125
    if causal:
        scores = np.where(np.tril(np.ones((length, length), dtype=bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=2, keepdims=True))
    expected = (p / p.sum(axis=2, keepdims=True)) @ v.astype(np.float64)
    args = dict(q=q, k=key, v=v, out=zeros(heads, length, width, type=np.float16), scale=0.125, length=length, D=width,
                BM=64, BN=32, CAUSAL=causal)
    return Case(k.attention, (length // 64, heads, 1), args, dict(out=(expected, HALF)))


@case("dot_scaled_mxfp8", "dot_scaled_mxfp4", "dot_scaled_mixed")
def _(arch, name):
    m, n, inner = 32, 32, 128
    formats = {"mxfp8": ("e4m3", "e5m2"), "mxfp4": ("e2m1", "e2m1"), "mixed": ("e5m2", "e2m1")}[name.rsplit("_", 1)[1]]
    names = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "e2m1": "fp4e2m1"}

    def operand(seed, kind, rows, cols):
        if kind == "e2m1":
            codes = integers(seed, 0, 16, rows, cols, type=np.uint8)
        else:
            codes = encode(names[kind], random(seed, rows, cols))
        return codes, decode(names[kind], codes).astype(np.float64)

    a, a_value = operand(57, formats[0], m, inner)
    b, b_value = operand(58, formats[1], inner, n)
    a_scale, b_scale = integers(59, 120, 134, m, inner // 32, type=np.uint8), integers(60, 120, 134, n, inner // 32,
                                                                                       type=np.uint8)
    a_value *= np.repeat(2.0 ** (a_scale.astype(np.float64) - 127), 32, axis=1)
    b_value *= np.repeat(2.0 ** (b_scale.astype(np.float64) - 127), 32, axis=1).T
    packs = tuple(2 if f == "e2m1" else 1 for f in formats)
    if packs[0] == 2:
        a = a[:, 0::2] | (a[:, 1::2] << 4)
    if packs[1] == 2:
        b = b[0::2, :] | (b[1::2, :] << 4)
    typed = [v if f == "e2m1" else Typed(v, names[f]) for v, f in ((a, formats[0]), (b, formats[1]))]
    args = dict(a=typed[0], a_scale=a_scale, b=typed[1], b_scale=b_scale, c=zeros(m, n), A_FORMAT=formats[0],
                B_FORMAT=formats[1], A_PACK=packs[0], B_PACK=packs[1], BM=m, BN=n, K=inner)
    return Case(k.dot_scaled, (1, 1, 1), args, dict(c=(a_value @ b_value, SINGLE)))


@case("reductions")
def _(arch, name):
    x = integers(61, -1000, 1000, 32, 64)
    args = dict(x=x, sums=zeros(32, type=np.int32), maxima=zeros(64, type=np.int32), where=zeros(32, type=np.int32),
                xors=zeros(64, type=np.int32), ROWS=32, COLS=64)
    return Case(k.reductions, (1, 1, 1), args,
                dict(sums=(x.sum(axis=1), EXACT), maxima=(x.max(axis=0), EXACT), where=(x.argmax(axis=1), EXACT),
                     xors=(np.bitwise_xor.reduce(x, axis=0), EXACT)))


@case("reduce_sum_fp32", "reduce_sum_fp16", "reduce_sum_fp64")
def _(arch, name):
    type_, tolerance = dict(fp32=(np.float32, SINGLE), fp16=(np.float16, HALF), fp64=(np.float64, DOUBLE))[name[-4:]]
    x = np.abs(random(62, 1500)).astype(type_)
    expected = [x[i * 512:(i + 1) * 512].astype(np.float64).sum() for i in range(3)]
    return Case(k.reduce_sum, (3, 1, 1), dict(x=x, out=zeros(3, type=type_), n=1500, BLOCK=512),
                dict(out=(np.array(expected), tolerance)))


@case("reduce_min_index")
def _(arch, name):
    x = random(63, 900)
    args = dict(x=x, out=zeros(1), index=zeros(1, type=np.int32), n=900, BLOCK=1024)
    return Case(k.reduce_min_index, (1, 1, 1), args,
                dict(out=(x.min(keepdims=True), EXACT), index=(np.array([x.argmin()]), EXACT)))


@case("cumsum", "cumsum_reverse")
def _(arch, name):
    x = integers(64, -100, 100, 16, 128)
    reverse = name.endswith("reverse")
    expected = np.cumsum(x[:, ::-1], axis=1)[:, ::-1] if reverse else np.cumsum(x, axis=1)
    return Case(k.cumsum, (1, 1, 1), dict(x=x, out=zeros(16, 128, type=np.int32), ROWS=16, COLS=128, REVERSE=reverse),
                dict(out=(expected.astype(np.int32), EXACT)))


@case("cumprod")
def _(arch, name):
    x = 1 + random(65, 64, 32) / 16
    return Case(k.cumprod, (1, 1, 1), dict(x=x, out=zeros(64, 32), ROWS=64, COLS=32),
                dict(out=(np.cumprod(x.astype(np.float64), axis=0), SINGLE)))


@case("associative_scan")
def _(arch, name):
    a, b = np.random.default_rng(66).uniform(0.5, 1, 512).astype(np.float32), random(67, 512)
    expected, h = [], 0.0
    for x, y in zip(a.astype(np.float64), b.astype(np.float64)):
        h = x * h + y
        expected.append(h)
    return Case(k.linear_recurrence, (1, 1, 1), dict(a=a, b=b, out=zeros(512), BLOCK=512),
                dict(out=(np.array(expected), SINGLE)))


@case("sort", "sort_descending")
def _(arch, name):
    x = random(68, 8, 128) if name == "sort" else integers(68, -30000, 30000, 8, 128, type=np.int16)
    down = name != "sort"
    expected = np.sort(x, axis=1)
    return Case(k.sort, (1, 1, 1), dict(x=x, out=zeros(8, 128, type=x.dtype), ROWS=8, COLS=128, DESCENDING=down),
                dict(out=(expected[:, ::-1] if down else expected, EXACT)))


@case("topk")
def _(arch, name):
    x = random(69, 8, 128)
    return Case(k.topk, (1, 1, 1), dict(x=x, out=zeros(8, 8), ROWS=8, COLS=128, COUNT=8),
                dict(out=(-np.sort(-x, axis=1)[:, :8], EXACT)))


@case("histogram")
def _(arch, name):
    x = integers(70, 0, 64, 1000)
    return Case(k.histogram, (2, 1, 1), dict(x=x, out=zeros(64, type=np.int32), n=1000, BINS=64, BLOCK=512),
                dict(out=(np.bincount(x, minlength=64).astype(np.int32), EXACT)))


@case("gather")
def _(arch, name):
    x, index = random(71, 32, 64), integers(72, 0, 32, 16, 64)
    return Case(k.gather, (1, 1, 1), dict(x=x, index=index, out=zeros(16, 64), ROWS=32, COLS=64, OUT=16),
                dict(out=(np.take_along_axis(x, index, axis=0), EXACT)))


@case("transpose_fp32", "transpose_fp16", "transpose_int8")
def _(arch, name):
    x = {"fp32": random(73, 50, 70), "fp16": random(73, 50, 70, type=np.float16),
         "int8": integers(73, -128, 128, 50, 70, type=np.int8)}[name.split("_")[1]]
    return Case(k.transpose, (2, 3, 1), dict(x=x, out=zeros(70, 50, type=x.dtype), rows=50, cols=70, BLOCK=32),
                dict(out=(x.T.copy(), EXACT)))


@case("join_split")
def _(arch, name):
    x, y = integers(74, -99, 99, 128), integers(75, -99, 99, 128)
    args = dict(x=x, y=y, pairs=zeros(128, 2, type=np.int32), evens=zeros(64, type=np.int32),
                odds=zeros(64, type=np.int32), cats=zeros(256, type=np.int32), N=128)
    return Case(k.join_split, (1, 1, 1), args,
                dict(pairs=(np.stack([x, y], axis=1), EXACT), evens=(x[0::2], EXACT), odds=(x[1::2], EXACT),
                     cats=(np.sort(np.concatenate([x, y])), EXACT)))


@case("interleave")
def _(arch, name):
    x, y = random(76, 256, type=np.float16), random(77, 256, type=np.float16)
    return Case(k.interleave, (1, 1, 1), dict(x=x, y=y, out=zeros(512, type=np.float16), N=256),
                dict(out=(np.stack([x, y], axis=1).reshape(-1), EXACT)))


ORDERS = {"relaxed_cta": ("relaxed", "cta"), "acquire_gpu": ("acquire", "gpu"), "release_gpu": ("release", "gpu"),
          "acq_rel_gpu": ("acq_rel", "gpu"), "acq_rel_sys": ("acq_rel", "sys"), "relaxed_sys": ("relaxed", "sys")}


@case(*(f"atomics_{name}" for name in ORDERS))
def _(arch, name):
    order, scope = ORDERS[name.removeprefix("atomics_")]
    block, programs = 128, 1 if scope == "cta" else 3
    at = np.arange(block)
    adds, extremes = np.zeros(8, dtype=np.int32), np.zeros(32, dtype=np.int32)
    bits = np.array([-1] * 4 + [0] * 8, dtype=np.int32)
    for p in range(programs):
        np.add.at(adds, at % 8, at + p)
        np.maximum.at(extremes, at % 16, at * 3 - p)
        np.minimum.at(extremes, 16 + at % 16, at * 5 - p)
        np.bitwise_and.at(bits, at % 4, ~(1 << (at % 24)))
        np.bitwise_or.at(bits, 4 + at % 4, 1 << (at % 24))
        np.bitwise_xor.at(bits, 8 + at % 4, at + p)
    xchgs = np.stack([at + p for p in range(programs)])
    args = dict(adds=zeros(8, type=np.int32), maxima=zeros(32, type=np.int32),
                ands=np.array([-1] * 4 + [0] * 8, dtype=np.int32), xchgs=zeros(programs, block, type=np.int32),
                tickets=zeros(1 + programs, type=np.int32), BLOCK=block, SEM=order, SCOPE=scope)
    tickets = np.array([programs] + [1] * programs)
    return Case(k.atomics_integer, (programs, 1, 1), args,
                dict(adds=(adds, EXACT), maxima=(extremes, EXACT), ands=(bits, EXACT), xchgs=(xchgs, EXACT),
                     tickets=(tickets, EXACT)))


@case("atomics_float")
def _(arch, name):
    at = np.arange(256)
    sums, wide, halves = np.zeros(64), np.zeros(16), np.zeros(64)
    for _ in range(2):
        np.add.at(sums, at % 32, at + 1)
        np.maximum.at(sums, 32 + at % 32, at - 64)
        np.add.at(wide, at % 16, at)
        np.add.at(halves, at % 64, at % 3)
    args = dict(sums=zeros(64), wide=zeros(16, type=np.float64), halves=zeros(64, type=np.float16), BLOCK=256,
                SCOPE="gpu")
    return Case(k.atomics_float, (2, 1, 1), args,
                dict(sums=(sums, EXACT), wide=(wide, EXACT), halves=(halves, EXACT)))


@case("atomic_lock")
def _(arch, name):
    args = dict(lock=zeros(1, type=np.int32), total=zeros(128, type=np.int32), BLOCK=128, SEM="acq_rel", SCOPE="gpu")
    return Case(k.atomic_lock, (4, 1, 1), args,
                dict(total=((np.arange(128) + 1) * 4, EXACT), lock=(np.zeros(1), EXACT)))


def uniform(seed, n):
    bits = philox(seed, np.arange(n)).view(np.int32)
    return bits, np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)


@case("random")
def _(arch, name):
    bits, expected = uniform(12345, 600)
    args = dict(seed=12345, out=zeros(600), ints=zeros(600, type=np.int32), n=600, BLOCK=256)
    return Case(k.random, (3, 1, 1), args, dict(out=(expected, EXACT), ints=(bits, EXACT)))


@case("dropout")
def _(arch, name):
    x = random(78, 600)
    keep = uniform(99, 600)[1] > np.float32(0.3)
    args = dict(x=x, out=zeros(600), n=600, p=0.3, seed=99, BLOCK=256)
    return Case(k.dropout, (3, 1, 1), args,
                dict(out=(np.where(keep, x / (np.float32(1) - np.float32(0.3)), 0), SINGLE)))


@case("device_print")
def _(arch, name):
    x = integers(79, 0, 100, 64)
    lanes = 64 if arch.startswith("gfx9") else 32
    return Case(
        k.print_values,
        (1, 1, 1),
        dict(x=x, out=zeros(64, type=np.int32), BLOCK=64),
        dict(out=(x + 1, EXACT)),
        warps=64 // lanes,
        printed=[f"idx ({i:2}) value: {v}" for i, v in enumerate(x)],
    )


@case("integers_64")
def _(arch, name):
    x = integers(80, -2**40, 2**40, 300, type=np.int64)
    y = integers(81, 1, 2**33, 300, type=np.int64) * np.where(np.arange(300) % 2, 1, -1)
    quotient = [int(a) // int(b) if (a < 0) == (b < 0) else -(abs(int(a)) // abs(int(b))) for a, b in zip(x, y)]
    expected = []
    for a, b, q in zip(x.tolist(), y.tolist(), quotient):
        high = ((a % 2**64) * (b % 2**64)) >> 64
        value = a * b + q - (a - q * b) + (a >> 5) + (a ^ b) + high
        expected.append((value + 2**63) % 2**64 - 2**63)
    return Case(k.integers_64, (2, 1, 1), dict(x=x, y=y, out=zeros(300, type=np.int64), n=300, BLOCK=256),
                dict(out=(np.array(expected, dtype=np.int64), EXACT)))


@case("convert_fp8")
def _(arch, name):
    import triton.language as tl
    types = {"fp8e4nv": tl.float8e4nv, "fp8e5": tl.float8e5, "fp8e4b8": tl.float8e4b8, "fp8e5b16": tl.float8e5b16}
    kinds = fp8(arch)
    x = random(82, 512) * np.repeat(np.float32([1, 8, 1 / 64, 0]), 128)
    codes = [encode(kind, x) for kind in kinds]
    args = dict(x=x, to_e4=zeros(512, type=np.uint8), to_e5=zeros(512, type=np.uint8), from_e4=zeros(512),
                from_e5=zeros(512), BLOCK=512, E4=types[kinds[0]], E5=types[kinds[1]])
    return Case(k.convert_fp8, (1, 1, 1), args,
                dict(to_e4=(codes[0], EXACT), to_e5=(codes[1], EXACT), from_e4=(decode(kinds[0], codes[0]), EXACT),
                     from_e5=(decode(kinds[1], codes[1]), EXACT)))


@case("convert_bf16")
def _(arch, name):
    x = random(83, 512) * 100
    bits = to_bf16(x)
    args = dict(x=x, to_bf16=Typed(zeros(512, type=np.uint16), "bf16"), from_bf16=zeros(512),
                to_half=zeros(512, type=np.float16), BLOCK=512)
    tripled = from_bf16(to_bf16(from_bf16(bits) * np.float32(3)))
    return Case(k.convert_bf16, (1, 1, 1), args,
                dict(to_bf16=(from_bf16(bits), EXACT), from_bf16=(tripled, EXACT),
                     to_half=(x.astype(np.float16), EXACT)))


@case("convert_integers")
def _(arch, name):
    x = integers(84, -2**31, 2**31, 256)
    args = dict(x=x, i8=zeros(256, type=np.int8), i16=zeros(256, type=np.int16), u8=zeros(256, type=np.uint8),
                i64=zeros(256, type=np.int64), f=zeros(256), BLOCK=256)
    return Case(k.convert_integers, (1, 1, 1), args,
                dict(i8=(x.astype(np.int8), EXACT), i16=(x.astype(np.int16), EXACT), u8=(x.astype(np.uint8), EXACT),
                     i64=(x.astype(np.int64) * 3, EXACT), f=(x.astype(np.float32), EXACT)))


@case("inline_assembly")
def _(arch, name):
    x, y = integers(85, -2**31, 2**31, 256), integers(86, -2**31, 2**31, 256)
    bits = (x ^ y).view(np.uint32).astype(np.uint64)
    expected = (((bits << np.uint64(32)) | bits) >> np.uint64(7)).astype(np.uint32).view(np.int32)
    return Case(k.inline_assembly, (1, 1, 1), dict(x=x, y=y, out=zeros(256, type=np.int32), BLOCK=256),
                dict(out=(expected, EXACT)))


@case("library_math")
def _(arch, name):
    x = random(87, 256)
    v = x.astype(np.float64)
    expected = np.concatenate([
        np.exp(v), [erf(a) for a in v], np.sin((x * np.float32(100)).astype(np.float64)),
        (np.abs(x) + np.float32(0.5)).astype(np.float64) ** v, np.tanh(v), np.log1p(np.abs(v)),
        np.fmod((x * np.float32(7)).astype(np.float64), 1.25),
        np.sqrt(np.abs(v)) + np.cos(v) + np.log2(np.abs(v) + 1) + np.floor(v)])
    return Case(k.library_math, (1, 1, 1), dict(x=x, out=zeros(8 * 256), BLOCK=256), dict(out=(expected, SINGLE)))


@case("descriptor_copy")
def _(arch, name):
    x = random(88, 50, 100)
    return Case(k.descriptor_copy, (2, 1, 1), dict(a=x, out=zeros(50, 100), rows=50, cols=100, BM=32, BN=32),
                dict(out=(x * 2 + 1, SINGLE)))


@case("tensor_descriptors")
def _(arch, name):
    a, b = random(89, 64, 64, type=np.float16), random(90, 64, 96, type=np.float16)
    args = dict(a=a, b=b, c=zeros(64, 96, type=np.float16), M=64, N=96, K=64, BM=32, BN=32, BK=32)
    return Case(k.tensor_descriptors, (2, 3, 1), args, dict(c=(a.astype(np.float64) @ b.astype(np.float64), HALF)))


@case("cross_entropy")
def _(arch, name):
    logits, labels = random(91, 5, 300), np.array([3, 299, -100, 0, 150], dtype=np.int64)
    v = logits.astype(np.float64)
    total = np.log(np.exp(v).sum(axis=1))
    expected = [0 if c == -100 else t - 0.9 * row[c] - 0.1 * row.mean() for row, t, c in zip(v, total, labels)]
    args = dict(logits=logits, labels=labels, losses=zeros(5), stride=300, classes=300, smoothing=0.1, BLOCK=128)
    return Case(k.cross_entropy, (5, 1, 1), args, dict(losses=(np.array(expected), SINGLE)))


@case("embedding")
def _(arch, name):
    table, tokens = random(92, 40, 100, type=np.float16), integers(93, 0, 40, 7, type=np.int64)
    args = dict(table=table, tokens=tokens, out=zeros(7, 100, type=np.float16), width=100, BLOCK=64)
    return Case(k.embedding, (7, 1, 1), args, dict(out=(table[tokens], EXACT)), warps=1)


@case("convolution_1d")
def _(arch, name):
    x, w = random(94, 200, 3), random(95, 3, 4)
    padded = np.concatenate([np.zeros((3, 3)), x.astype(np.float64)])
    acc = sum(padded[tap:tap + 200] * w[:, tap] for tap in range(4))
    args = dict(x=x, weight=w, out=zeros(200, 3), length=200, channels=3, TAPS=4, BLOCK=128)
    return Case(k.convolution_1d, (2, 3, 1), args, dict(out=(acc / (1 + np.exp(-acc)), SINGLE)))


@case("double_precision")
def _(arch, name):
    x, y = random(96, 300, type=np.float64), random(97, 300, type=np.float64)
    return Case(k.double_precision, (2, 1, 1), dict(x=x, y=y, out=zeros(300, type=np.float64), n=300, BLOCK=256),
                dict(out=(x / y + np.sqrt(np.abs(x)) + np.exp(y) * np.sin(x), DOUBLE)))


def collatz(x):
    steps = []
    for v in x.tolist():
        count = 0
        while v != 1:
            v, count = v // 2 if v % 2 == 0 else 3 * v + 1, count + 1
        steps.append(count)
    return np.array(steps, dtype=np.int32)


@case("while_loop")
def _(arch, name):
    x = integers(98, 1, 500, 300)
    return Case(k.while_loop, (3, 1, 1), dict(x=x, steps=zeros(300, type=np.int32), n=300, BLOCK=128),
                dict(steps=(collatz(x), EXACT)))


@case("scalar_loop")
def _(arch, name):
    x = integers(99, 1, 500, 20)
    return Case(k.scalar_loop, (20, 1, 1), dict(x=x, out=zeros(20, type=np.int32)), dict(out=(collatz(x), EXACT)),
                warps=1)
