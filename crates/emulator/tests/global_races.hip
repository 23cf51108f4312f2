// Kernels that synchronise through global memory. `NO_...` leaves one element out.
typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned char u8;
#define DEVICE static inline __attribute__((device))
#define KERNEL(name) extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(128, 128))) \
    void name(u32 *data, u32 *flags, u32 *out)
#define T __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define SHARED __attribute__((shared))
enum { GROUPS = 6, ITEMS = 128 };

#ifdef NO_FENCE
DEVICE void fence() { __asm__ volatile("" ::: "memory"); }
#else
DEVICE void fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
#endif
DEVICE void always_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#ifdef NO_BARRIER
DEVICE void barrier() { __asm__ volatile("" ::: "memory"); }
#else
DEVICE void barrier() { always_barrier(); }
#endif
#define LOAD(at, order) __hip_atomic_load(at, order, __HIP_MEMORY_SCOPE_AGENT)
#define STORE(at, value, order) __hip_atomic_store(at, value, order, __HIP_MEMORY_SCOPE_AGENT)
#define ADD(at, value, order) __hip_atomic_fetch_add(at, value, order, __HIP_MEMORY_SCOPE_AGENT)
#define RELAXED __ATOMIC_RELAXED

KERNEL(by_barrier) {
    u32 *mine = data + ITEMS * G;
    mine[T] = T;
    barrier();
    out[ITEMS * G + T] = mine[ITEMS - 1 - T];
    always_barrier();
    mine[(T + 70) % ITEMS] = 1;
}

// The last workgroup adds up what all have stored.
KERNEL(last_block) {
    SHARED u32 last;
    data[ITEMS * G + T] = T;
    fence();
    barrier();
    if (T == 0) last = ADD(flags, 1, RELAXED) == GROUPS - 1;
    always_barrier();
    if (last) {
        fence();
        u32 sum = 0;
        for (u32 n = T; n < GROUPS * ITEMS; n += ITEMS) sum += data[n];
        out[T] = sum;
        if (T == 0) flags[0] = 0;
    }
}

// Decoupled look-back with a value and a flag of each workgroup.
KERNEL(look_back) {
    SHARED u32 before;
    u32 tile = G;
    if (T == 0) {
        u32 sum = 1 + tile;
        data[tile] = sum;
        fence();
        STORE(flags + tile, 1, RELAXED);
        u32 all = 0;
        for (int at = (int)tile - 1; at >= 0; at--) {
#ifdef NO_ATOMIC
            for (u32 n = 0; n < 3000 && !*(u32 *)(flags + at); n++) { __asm__ volatile("" ::: "memory"); out[900] = n; }
#else
            while (!LOAD(flags + at, RELAXED)) {}
#endif
            fence();
            all += data[at];
        }
        before = all;
    }
    always_barrier();
    out[ITEMS * G + T] = before + T;
}

// The same in one loop, which polls and goes on to the next workgroup: the address is not the same in all rounds.
KERNEL(look_back_in_one_loop) {
    SHARED u32 before;
    u32 tile = G;
    if (T == 0) {
        u32 all = 0;
        if (tile > 0) {
            data[tile] = 1 + tile;
            fence();
            STORE(flags + tile, 1, RELAXED);
            for (int at = tile - 1;;) {
                u32 flag = LOAD(flags + at, RELAXED);
                if (flag == 0) continue;
                fence();
                if (flag == 2) { all += data[64 + at]; break; }
                all += data[at--];
            }
        }
        data[64 + tile] = all + 1 + tile;
        fence();
        STORE(flags + tile, 2, RELAXED);
        before = all;
    }
    always_barrier();
    out[ITEMS * G + T] = before + T;
}

// Value and flag in one word; a whole row of lanes looks at the words of others.
KERNEL(look_back_packed) {
    u64 *state = (u64 *)flags;
    if (T == 0) STORE(state + G, (u64)1 << 32 | (G + 1), RELAXED);
    u64 sum = 0;
    if (T < G) {
        u64 found;
        do { found = LOAD(state + T, RELAXED); } while (!(found >> 32));
        sum = found & 0xffffffff;
    }
    out[ITEMS * G + T] = sum;
}

KERNEL(spin_lock) {
    if (T % 64 == 0) {
#ifndef NO_LOCK
        u32 expected = 0;
        while (!__hip_atomic_compare_exchange_strong(flags, &expected, 1, __ATOMIC_ACQUIRE, RELAXED,
            __HIP_MEMORY_SCOPE_AGENT)) { expected = 0; __builtin_amdgcn_s_sleep(1); }
#endif
        data[0] = data[0] + 1;
        data[1] = data[0] * 3;
#ifndef NO_LOCK
        STORE(flags, 0, __ATOMIC_RELEASE);
#endif
    }
}

DEVICE void sync_grid(u32 *flags, u32 phase) {
#ifndef NO_SYNC
    always_barrier();
    if (T == 0) {
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        ADD(flags, 1, RELAXED);
        while (LOAD(flags, RELAXED) < GROUPS * phase) __builtin_amdgcn_s_sleep(1);
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    }
    always_barrier();
#endif
}
KERNEL(grid_sync) {
    u32 at = ITEMS * G + T;
    data[at] = at;
    sync_grid(flags, 1);
    out[at] = data[GROUPS * ITEMS - 1 - at];
    sync_grid(flags, 2);
    data[(at + 300) % (GROUPS * ITEMS)] = out[(at + 77) % (GROUPS * ITEMS)];
}

#define FLAG(name, scope, fence_scope) KERNEL(name) { \
    if (G == 0) { \
        data[T] = T; \
        fence_scope; \
        always_barrier(); \
        if (T == 0) { fence_scope; __hip_atomic_store(flags, 1, RELAXED, scope); } \
    } else if (G == 1) { \
        if (T == 0) while (!__hip_atomic_load(flags, RELAXED, scope)) {} \
        fence_scope; \
        always_barrier(); \
        out[T] = data[127 - T]; \
        always_barrier(); \
        if (T == 0) flags[0] = 0; \
    } \
}
FLAG(agent_flag, __HIP_MEMORY_SCOPE_AGENT, fence())
FLAG(system_flag, __HIP_MEMORY_SCOPE_SYSTEM, __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""))

// One wave hands over what it has stored itself.
KERNEL(wave_flag) {
    if (T >= 32) return;
    if (G == 0) {
        data[T] = T;
        fence();
        if (T == 0) STORE(flags, 1, RELAXED);
    } else {
        while (!LOAD(flags, RELAXED)) {}
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        out[ITEMS * G + T] = data[31 - T];
    }
}

// Each lane has a flag of its own.
KERNEL(lane_flags) {
    if (G == 0) {
        data[T] = T;
        STORE(flags + T, 1, __ATOMIC_RELEASE);
    } else {
        while (!LOAD(flags + 127 - T, __ATOMIC_ACQUIRE)) {}
        out[ITEMS * G + T] = data[127 - T];
    }
}

// From the leaves of a tree to its root: the second that comes to a node goes on.
KERNEL(tree) {
    u32 leaves = GROUPS * ITEMS, node = leaves + ITEMS * G + T;
    data[node] = 1;
    for (node /= 2; node > 0; node /= 2) {
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        if (ADD(flags + node, 1, RELAXED) == 0) return;
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        data[node] = data[2 * node] + data[2 * node + 1];
    }
}

KERNEL(histogram) {
#ifdef NO_ATOMIC
    flags[T * 7 % 64] += 1;
#else
    ADD(flags + T * 7 % 64, 1, RELAXED);
#endif
}

// The waves of a workgroup, at the scope of a workgroup.
KERNEL(group_flag) {
    u32 *mine = data + ITEMS * G, lanes = __builtin_amdgcn_wavefrontsize();
    if (T < lanes) {
        mine[T] = T;
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        if (T == 0) __hip_atomic_store(flags + G, 1, RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    } else if (T < 2 * lanes) {
        while (!__hip_atomic_load(flags + G, RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)) {}
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        out[ITEMS * G + T] = mine[2 * lanes - 1 - T];
    }
}

KERNEL(volatile_flag) {
    volatile u32 *flag = flags;
    if (G == 0 && T == 0) {
        data[0] = 7;
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        *flag = 1;
    } else if (T == 0) {
        while (!*flag) {}
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        out[G] = data[0];
    }
}

// A maximum of floats, as programs make one of compare-and-swap.
KERNEL(compare_and_swap) {
    u32 old = flags[0], seen, mine = T + G;
    do {
        seen = old;
        if (seen >= mine) break;
        old = seen;
        __hip_atomic_compare_exchange_strong(flags, &old, mine, RELAXED, RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    } while (old != seen);
}

KERNEL(polled_by_atomic) {
    if (T != 0) return;
    if (G == 0) {
        data[0] = 7;
        STORE(flags, 1, __ATOMIC_RELEASE);
    } else {
        while (!ADD(flags, 0, __ATOMIC_ACQUIRE)) {}
        out[G] = data[0];
    }
}

// Workgroups take items from a queue that they also fill.
KERNEL(queue) {
    SHARED u32 taken;
    for (;;) {
        if (T == 0) taken = ADD(flags, 1, RELAXED);
        always_barrier();
        u32 item = taken;
        always_barrier();
        if (item >= 12) return;
        out[ITEMS * item + T] = item;
    }
}

// Neighbouring bytes of different waves.
KERNEL(bytes) {
    u8 *to = (u8 *)data;
    u32 at = T * GROUPS + G;
    to[at] = at;
    to[at] += 1;
}

KERNEL(same_value) {
    if (T % 3 == 0) data[0] = 1;
}

KERNEL(lanes_differ) {
    if (G == 0 && T < 32) data[T / 2] = T;
}

KERNEL(lanes_agree) {
    if (G == 0 && T < 32) data[T / 2] = 5;
}

KERNEL(writes) {
    data[ITEMS * G + T] = T;
}

KERNEL(reads) {
    out[ITEMS * G + T] = data[ITEMS * G + 127 - T];
}
