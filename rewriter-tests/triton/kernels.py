"""Kernels as users of Triton write them, each of one kind. What they compute is in cases.py, with numpy."""

import triton
import triton.language as tl
from triton.language.extra.hip import libdevice


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def relu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.maximum(value, 0.0), mask=mask)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask, other=0.0)
    tl.store(out + at, value * 0.5 * (1.0 + libdevice.erf(value * 0.70710678118654752)), mask=mask)


@triton.jit
def where_masks(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask, other=-1)
    b = tl.load(y + at, mask=mask & (a > 0), other=7)
    chosen = tl.where((a > b) & (at % 3 != 0), a - b, tl.where(a < 0, -a, b))
    tl.store(out + at, chosen, mask=mask & (at % 5 != 4))


@triton.jit
def softmax(x, out, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    value = tl.load(x + row * stride + at, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + at, value / tl.sum(value, axis=0), mask=mask)


@triton.jit
def layernorm_forward(x, weight, bias, out, mean_out, rstd_out, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * stride + at, mask=at < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + at, mask=at < cols, other=0.0).to(tl.float32)
        value = tl.where(at < cols, value - mean, 0.0)
        squares += value * value
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < cols
        value = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
        scaled = (value - mean) * rstd * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
        tl.store(out + row * stride + at, scaled, mask=mask)


@triton.jit
def layernorm_backward(dx, dy, dw, db, x, w, mean, rstd, locks, stride, cols, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    value = tl.load(x + row * stride + at, mask=mask, other=0).to(tl.float32)
    grad = tl.load(dy + row * stride + at, mask=mask, other=0).to(tl.float32)
    weight = tl.load(w + at, mask=mask).to(tl.float32)
    r = tl.load(rstd + row)
    hat = tl.where(mask, (value - tl.load(mean + row)) * r, 0.0)
    wgrad = tl.where(mask, weight * grad, 0.0)
    c1 = tl.sum(hat * wgrad, axis=0) / cols
    c2 = tl.sum(wgrad, axis=0) / cols
    tl.store(dx + row * stride + at, (wgrad - (hat * c1 + c2)) * r, mask=mask)
    # Rows of a group add up under a lock.
    group = row % GROUP
    lock = locks + group
    count = locks + GROUP + group
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    partial_w = grad * hat
    partial_b = grad
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial_w += tl.load(dw + group * cols + at, mask=mask)
        partial_b += tl.load(db + group * cols + at, mask=mask)
    tl.store(dw + group * cols + at, partial_w, mask=mask)
    tl.store(db + group * cols + at, partial_b, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def rmsnorm(x, weight, out, stride, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    value = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / cols + eps)
    weights = tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row * stride + at, (value * scale * weights).to(out.dtype.element_ty), mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, stride_a, stride_b, stride_c, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_at = a + rows[:, None] * stride_a + inner[None, :]
    b_at = b + inner[:, None] * stride_b + cols[None, :]
    acc = tl.zeros([BM, BN], dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(a_at, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        y = tl.load(b_at, mask=(inner[:, None] < left) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        a_at += BK
        b_at += BK * stride_b
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + cols[None, :], acc.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        at = inner + k * BK * SPLIT
        x = tl.load(a + rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        y = tl.load(b + at[:, None] * N + cols[None, :], mask=at[:, None] < K, other=0.0)
        acc += tl.dot(x, y)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.atomic_add(c + rows[:, None] * N + cols[None, :], acc, mask=mask)


@triton.jit
def matmul_batched(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + batch * M * K + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + batch * K * N + (k + inner)[:, None] * N + cols[None, :])
        acc += tl.dot(x, y)
    tl.store(c + batch * M * N + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


@triton.jit
def matmul_grouped(addresses_a, addresses_b, addresses_c, sizes, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    first = 0
    for g in range(groups):
        M = tl.load(sizes + g * 3)
        N = tl.load(sizes + g * 3 + 1)
        K = tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * tiles_n
        while tile >= first and tile < first + tiles:
            a = tl.load(addresses_a + g).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses_b + g).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses_c + g).to(tl.pointer_type(tl.float16))
            rows = (tile - first) // tiles_n * BM + tl.arange(0, BM)
            cols = (tile - first) % tiles_n * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            acc = tl.zeros([BM, BN], dtype=tl.float32)
            for k in range(0, K, BK):
                x = tl.load(a + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=0.0)
                y = tl.load(b + (k + inner)[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
                acc += tl.dot(x, y)
            mask = (rows[:, None] < M) & (cols[None, :] < N)
            tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.float16), mask=mask)
            tile += PROGRAMS
        first += tiles


@triton.jit
def matmul_persistent(a, b, c, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, PROGRAMS, flatten=True):
        rows = tile // tiles_n * BM + tl.arange(0, BM)
        cols = tile % tiles_n * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        acc = tl.zeros([BM, BN], dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
            y = tl.load(b + (k + inner)[:, None] * N + cols[None, :])
            acc = tl.dot(x, y, acc)
        tl.store(c + rows[:, None] * N + cols[None, :], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, out, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * length * D
    rows = start + tl.arange(0, BM)
    dims = tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + dims[None, :])
    highest = tl.full([BM], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BM], dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    end = start + BM if CAUSAL else length
    for n in range(0, end, BN):
        cols = n + tl.arange(0, BN)
        key = tl.load(k + head + cols[None, :] * D + dims[:, None])
        scores = tl.dot(query, key) * (scale * 1.44269504)
        if CAUSAL:
            scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        now = tl.maximum(highest, tl.max(scores, axis=1))
        p = tl.exp2(scores - now[:, None])
        correction = tl.exp2(highest - now)
        total = total * correction + tl.sum(p, axis=1)
        acc = acc * correction[:, None]
        value = tl.load(v + head + cols[:, None] * D + dims[None, :])
        acc = tl.dot(p.to(tl.float16), value, acc)
        highest = now
    tl.store(out + head + rows[:, None] * D + dims[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def dot_scaled(a, a_scale, b, b_scale, c, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACK: tl.constexpr,
               B_PACK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, BM)
    cols = tl.arange(0, BN)
    a_inner = tl.arange(0, K // A_PACK)
    b_inner = tl.arange(0, K // B_PACK)
    blocks = tl.arange(0, K // 32)
    x = tl.load(a + rows[:, None] * (K // A_PACK) + a_inner[None, :])
    y = tl.load(b + b_inner[:, None] * BN + cols[None, :])
    x_scale = tl.load(a_scale + rows[:, None] * (K // 32) + blocks[None, :])
    y_scale = tl.load(b_scale + cols[:, None] * (K // 32) + blocks[None, :])
    acc = tl.dot_scaled(x, x_scale, A_FORMAT, y, y_scale, B_FORMAT)
    tl.store(c + rows[:, None] * BN + cols[None, :], acc)


@triton.jit
def reductions(x, sums, maxima, where, xors, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    value = tl.load(x + rows[:, None] * COLS + cols[None, :])
    tl.store(sums + rows, tl.sum(value, axis=1))
    tl.store(maxima + cols, tl.max(value, axis=0))
    tl.store(where + rows, tl.argmax(value, axis=1))
    tl.store(xors + cols, tl.xor_sum(value, axis=0))


@triton.jit
def reduce_sum(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(value, axis=0))


@triton.jit
def reduce_min_index(x, out, index, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=float("inf"))
    least, place = tl.min(value, axis=0, return_indices=True)
    tl.store(out, least)
    tl.store(index, place)


@triton.jit
def cumsum(x, out, ROWS: tl.constexpr, COLS: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=1, reverse=REVERSE))


@triton.jit
def cumprod(x, out, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out + at, tl.cumprod(tl.load(x + at), axis=0))


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def linear_recurrence(a, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    _, result = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, compose)
    tl.store(out + at, result)


@triton.jit
def sort(x, out, ROWS: tl.constexpr, COLS: tl.constexpr, DESCENDING: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), descending=DESCENDING))


@triton.jit
def topk(x, out, ROWS: tl.constexpr, COLS: tl.constexpr, COUNT: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    best = tl.topk(tl.load(x + rows * COLS + tl.arange(0, COLS)[None, :]), COUNT)
    tl.store(out + rows * COUNT + tl.arange(0, COUNT)[None, :], best)


@triton.jit
def histogram(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def gather(x, index, out, ROWS: tl.constexpr, COLS: tl.constexpr, OUT: tl.constexpr):
    cols = tl.arange(0, COLS)[None, :]
    source = tl.load(x + tl.arange(0, ROWS)[:, None] * COLS + cols)
    at = tl.arange(0, OUT)[:, None] * COLS + cols
    tl.store(out + at, tl.gather(source, tl.load(index + at), 0))


@triton.jit
def transpose(x, out, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    mask = (c[:, None] < cols) & (r[None, :] < rows)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(tile), mask=mask)


@triton.jit
def join_split(x, y, pairs, evens, odds, cats, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    b = tl.load(y + at)
    joined = tl.join(a, b)
    tl.store(pairs + at[:, None] * 2 + tl.arange(0, 2)[None, :], joined)
    even, odd = tl.split(tl.reshape(a, (N // 2, 2)))
    half = tl.arange(0, N // 2)
    tl.store(evens + half, even)
    tl.store(odds + half, odd)
    tl.store(cats + tl.arange(0, 2 * N), tl.sort(tl.cat(a, b, can_reorder=True)))


@triton.jit
def interleave(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(tl.load(x + at), tl.load(y + at)))


@triton.jit
def atomics_integer(adds, maxima, ands, xchgs, tickets, BLOCK: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    program = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.atomic_add(adds + at % 8, at + program, sem=SEM, scope=SCOPE)
    tl.atomic_max(maxima + at % 16, at * 3 - program, sem=SEM, scope=SCOPE)
    tl.atomic_min(maxima + 16 + at % 16, at * 5 - program, sem=SEM, scope=SCOPE)
    tl.atomic_and(ands + at % 4, ~(1 << (at % 24)), sem=SEM, scope=SCOPE)
    tl.atomic_or(ands + 4 + at % 4, 1 << (at % 24), sem=SEM, scope=SCOPE)
    tl.atomic_xor(ands + 8 + at % 4, at + program, sem=SEM, scope=SCOPE)
    tl.atomic_xchg(xchgs + program * BLOCK + at, at + program, sem=SEM, scope=SCOPE)
    old = tl.atomic_add(tickets, 1, sem=SEM, scope=SCOPE)
    tl.store(tickets + 1 + old, 1)


@triton.jit
def atomics_float(sums, wide, halves, BLOCK: tl.constexpr, SCOPE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.atomic_add(sums + at % 32, (at + 1).to(tl.float32), scope=SCOPE)
    tl.atomic_max(sums + 32 + at % 32, at.to(tl.float32) - 64.0, scope=SCOPE)
    tl.atomic_add(wide + at % 16, at.to(tl.float64), scope=SCOPE)
    tl.atomic_add(halves + at % 64, (at % 3).to(tl.float16), scope=SCOPE)


@triton.jit
def atomic_lock(lock, total, BLOCK: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1, sem=SEM, scope=SCOPE) == 1:
        pass
    tl.store(total + at, tl.load(total + at) + at + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem=SEM, scope=SCOPE)


@triton.jit
def random(seed, out, ints, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.rand(seed, at), mask=mask)
    tl.store(ints + at, tl.randint(seed, at), mask=mask)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask)
    tl.store(out + at, tl.where(tl.rand(seed, at) > p, value / (1 - p), 0.0), mask=mask)


@triton.jit
def print_values(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    if tl.sum(value) > 10:
        tl.device_print("value", value)
    tl.store(out + at, value + 1)


@triton.jit
def integers_64(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask, other=0)
    b = tl.load(y + at, mask=mask, other=1)
    tl.store(out + at, a * b + a // b - a % b + (a >> 5) + (a ^ b) + tl.umulhi(a, b), mask=mask)


@triton.jit
def convert_fp8(x, to_e4, to_e5, from_e4, from_e5, BLOCK: tl.constexpr, E4: tl.constexpr, E5: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    e4 = value.to(E4)
    e5 = value.to(E5)
    tl.store(to_e4 + at, e4.to(tl.uint8, bitcast=True))
    tl.store(to_e5 + at, e5.to(tl.uint8, bitcast=True))
    tl.store(from_e4 + at, e4.to(tl.float32))
    tl.store(from_e5 + at, e5.to(tl.float16).to(tl.float32))


@triton.jit
def convert_bf16(x, to_bf16, from_bf16, to_half, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(to_bf16 + at, value.to(tl.bfloat16))
    tl.store(from_bf16 + at, (value.to(tl.bfloat16) * 3.0).to(tl.float32))
    tl.store(to_half + at, value.to(tl.float16))


@triton.jit
def convert_integers(x, i8, i16, u8, i64, f, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(i8 + at, value.to(tl.int8))
    tl.store(i16 + at, value.to(tl.int16))
    tl.store(u8 + at, value.to(tl.uint8))
    tl.store(i64 + at, value.to(tl.int64) * 3)
    tl.store(f + at, value.to(tl.float32))


@triton.jit
def inline_assembly(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    result = tl.inline_asm_elementwise("v_xor_b32 $0, $1, $2\nv_alignbit_b32 $0, $0, $0, 7", "=&v,v,v",
                                       [tl.load(x + at), tl.load(y + at)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, result)


@triton.jit
def library_math(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, libdevice.exp(v))
    tl.store(out + BLOCK + at, libdevice.erf(v))
    tl.store(out + 2 * BLOCK + at, libdevice.sin(v * 100.0))
    tl.store(out + 3 * BLOCK + at, libdevice.pow(tl.abs(v) + 0.5, v))
    tl.store(out + 4 * BLOCK + at, libdevice.tanh(v))
    tl.store(out + 5 * BLOCK + at, libdevice.log1p(tl.abs(v)))
    tl.store(out + 6 * BLOCK + at, libdevice.fmod(v * 7.0, 1.25))
    tl.store(out + 7 * BLOCK + at, tl.sqrt(tl.abs(v)) + tl.cos(v) + tl.log2(tl.abs(v) + 1.0) + tl.floor(v))


@triton.jit
def descriptor_copy(a, out, rows, cols, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(a, shape=[rows, cols], strides=[cols, 1], block_shape=[BM, BN])
    target = tl.make_tensor_descriptor(out, shape=[rows, cols], strides=[cols, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    for col in range(0, cols, BN):
        target.store([row, col], source.load([row, col]) * 2.0 + 1.0)


@triton.jit
def tensor_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    x_of = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    y_of = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    z_of = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    col = tl.program_id(1) * BN
    acc = tl.zeros([BM, BN], dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(x_of.load([row, k]), y_of.load([k, col]), acc)
    z_of.store([row, col], acc.to(tl.float16))


@triton.jit
def cross_entropy(logits, labels, losses, stride, classes, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    highest = -float("inf")
    total = 0.0
    sum_of_logits = 0.0
    for start in range(0, classes, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(logits + row * stride + at, mask=at < classes, other=-float("inf")).to(tl.float32)
        now = tl.maximum(highest, tl.max(value))
        total = total * tl.exp(highest - now) + tl.sum(tl.exp(value - now))
        sum_of_logits += tl.sum(tl.where(at < classes, value, 0.0))
        highest = now
    if label == -100:
        tl.store(losses + row, 0.0)
    else:
        loss = tl.log(total) + highest
        picked = tl.load(logits + row * stride + label).to(tl.float32)
        tl.store(losses + row, loss - (1 - smoothing) * picked - smoothing * sum_of_logits / classes)


@triton.jit
def embedding(table, tokens, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    token = tl.load(tokens + row)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(table + token * width + at, mask=at < width)
        tl.store(out + row * width + at, value, mask=at < width)


@triton.jit
def convolution_1d(x, weight, out, length, channels, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for tap in tl.static_range(TAPS):
        from_at = at + tap - (TAPS - 1)
        value = tl.load(x + from_at * channels + channel, mask=(from_at >= 0) & (from_at < length), other=0.0)
        acc += value * tl.load(weight + channel * TAPS + tap)
    tl.store(out + at * channels + channel, acc * tl.sigmoid(acc), mask=at < length)


@triton.jit
def double_precision(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(x + at, mask=mask, other=1.0)
    b = tl.load(y + at, mask=mask, other=1.0)
    tl.store(out + at, a / b + tl.sqrt(tl.abs(a)) + tl.exp(b) * libdevice.sin(a), mask=mask)


@triton.jit
def while_loop(x, steps, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask, other=1)
    count = tl.zeros([BLOCK], dtype=tl.int32)
    while tl.max(value, axis=0) > 1:
        running = value > 1
        value = tl.where(running, tl.where(value % 2 == 0, value // 2, 3 * value + 1), value)
        count += running.to(tl.int32)
    tl.store(steps + at, count, mask=mask)


@triton.jit
def scalar_loop(x, out):
    program = tl.program_id(0)
    value = tl.load(x + program)
    steps = 0
    while value != 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(out + program, steps)
