// Kernels that wait for a clock, and others that read one. `out` has what the clock advanced by, and rounds.
#define KERNEL extern "C" __attribute__((global)) void

KERNEL waits_for_constant_clock(long ticks, long *out) {
    long start = __builtin_readsteadycounter(), rounds = 0, now;
    do {
        now = __builtin_readsteadycounter();
        ++rounds;
    } while (now - start < ticks);
    out[0] = now - start;
    out[1] = rounds;
}

KERNEL waits_for_shader_clock(long ticks, long *out) {
    long start = __builtin_readcyclecounter(), rounds = 0, now;
    do {
        now = __builtin_readcyclecounter();
        ++rounds;
    } while (now - start < ticks);
    out[0] = now - start;
    out[1] = rounds;
}

// The lanes of a wave wait for different times.
KERNEL lanes_wait(long ticks, long *out) {
    long lane = __builtin_amdgcn_workitem_id_x(), start = __builtin_readsteadycounter(), now;
    do {
        now = __builtin_readsteadycounter();
    } while (now - start < ticks + lane);
    out[lane] = now - start;
}

// Until another kernel writes a flag, or for too long. No other kernel does.
KERNEL waits_for_flag(long ticks, long *out) {
    long start = __builtin_readsteadycounter(), rounds = 0, now;
    do {
        now = __builtin_readsteadycounter();
        ++rounds;
    } while (__atomic_load_n(out + 2, __ATOMIC_RELAXED) == 0 && now - start < ticks);
    out[0] = now - start;
    out[1] = rounds;
}

// How long does it take to read the clock?
KERNEL measures(long rounds, long *out) {
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        long start = __builtin_readsteadycounter();
        sum += __builtin_readsteadycounter() - start;
    }
    out[0] = sum;
    out[1] = rounds;
}

KERNEL sleeps(long rounds, long *out) {
    long start = __builtin_readsteadycounter();
    for (long i = 0; i < rounds; i++) __builtin_amdgcn_s_sleep(127);
    out[0] = __builtin_readsteadycounter() - start;
    out[1] = rounds;
}
