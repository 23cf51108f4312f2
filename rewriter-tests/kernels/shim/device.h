// A GPU's side of kernel.h: clang's builtins, no headers, no libraries.
#pragma once
#pragma clang force_cuda_host_device begin

#define KERNEL(name) extern "C" __attribute__((global)) void name
#define TEST(...)
#define TEST_WITH(...)
#define SHARED __attribute__((shared)) static
#define DYNAMIC_SHARED(type, name) extern __attribute__((shared)) type name[]
#define TABLE __attribute__((constant)) const
#define GLOBAL_VARIABLE __attribute__((device))

#define WAVE __AMDGCN_WAVEFRONT_SIZE__
#if defined(__GFX8__) || defined(__GFX9__)
#define RDNA 0
#else
#define RDNA 1
#endif

INLINE u32 local_id(u32 axis = 0) {
    return axis == 0   ? __builtin_amdgcn_workitem_id_x()
           : axis == 1 ? __builtin_amdgcn_workitem_id_y()
                       : __builtin_amdgcn_workitem_id_z();
}
INLINE u32 group_id(u32 axis = 0) {
    return axis == 0   ? __builtin_amdgcn_workgroup_id_x()
           : axis == 1 ? __builtin_amdgcn_workgroup_id_y()
                       : __builtin_amdgcn_workgroup_id_z();
}
INLINE u32 group_size(u32 axis = 0) {
    return axis == 0   ? __builtin_amdgcn_workgroup_size_x()
           : axis == 1 ? __builtin_amdgcn_workgroup_size_y()
                       : __builtin_amdgcn_workgroup_size_z();
}
INLINE u32 grid_size(u32 axis = 0) {
    return axis == 0   ? __builtin_amdgcn_grid_size_x()
           : axis == 1 ? __builtin_amdgcn_grid_size_y()
                       : __builtin_amdgcn_grid_size_z();
}
INLINE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
INLINE void fence_device() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

// --- lanes of a wave
INLINE u32 lane() {
#if WAVE == 64
    return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
#else
    return __builtin_amdgcn_mbcnt_lo(~0u, 0);
#endif
}
INLINE u64 ballot(bool p) {
#if WAVE == 64
    return __builtin_amdgcn_ballot_w64(p);
#else
    return __builtin_amdgcn_ballot_w32(p);
#endif
}
// Bits of the mask below this lane.
INLINE u32 bits_below(u64 mask) {
#if WAVE == 64
    return __builtin_amdgcn_mbcnt_hi((u32)(mask >> 32), __builtin_amdgcn_mbcnt_lo((u32)mask, 0));
#else
    return __builtin_amdgcn_mbcnt_lo((u32)mask, 0);
#endif
}
INLINE u32 first_lane(u32 v) { return __builtin_amdgcn_readfirstlane(v); }
INLINE u32 read_lane(u32 v, u32 from) { return __builtin_amdgcn_readlane(v, from); }
// The half of a wave of 64, or the wave of 32, is what all targets can shuffle within. Where the halves are apart
// (gfx10, gfx11), the half's own bit of the address does not matter.
INLINE u32 shuffle32(u32 v, u32 from) {
    return __builtin_amdgcn_ds_bpermute((int)((lane() & 32) | (from & 31)) * 4, v);
}
INLINE u32 push32(u32 v, u32 to) { return __builtin_amdgcn_ds_permute((int)((lane() & 32) | (to & 31)) * 4, v); }
INLINE u32 shuffle(u32 v, u32 from) {
#if WAVE == 64 && RDNA
    u32 result = 0;
    for (u32 i = 0; i < 64; i++) {
        u32 other = __builtin_amdgcn_readlane(v, i);
        result = (from & 63) == i ? other : result;
    }
    return result;
#else
    return __builtin_amdgcn_ds_bpermute((int)from * 4, v);
#endif
}
template <u32 pattern> INLINE u32 swizzle(u32 v) { return __builtin_amdgcn_ds_swizzle(v, pattern); }
template <u32 control, u32 rows = 15, u32 banks = 15, bool bound = false> INLINE u32 dpp(u32 old, u32 v) {
    return __builtin_amdgcn_update_dpp(old, v, control, rows, banks, bound);
}
#if RDNA
template <u32 selectors> INLINE u32 dpp8(u32 v) { return __builtin_amdgcn_mov_dpp8(v, selectors); }
INLINE u32 permlane16(u32 old, u32 v, u32 low, u32 high) {
    return __builtin_amdgcn_permlane16(old, v, low, high, false, false);
}
INLINE u32 permlanex16(u32 old, u32 v, u32 low, u32 high) {
    return __builtin_amdgcn_permlanex16(old, v, low, high, false, false);
}
#endif

// --- atomics; the scope is a workgroup's for LDS and the device's otherwise
#define DEFINE_ATOMIC(name, builtin)                                                                                   \
    template <class T> INLINE T name(T *at, T v) {                                                                     \
        return builtin(at, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                                             \
    }                                                                                                                  \
    template <class T> INLINE T name##_shared(T *at, T v) {                                                            \
        return builtin(at, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);                                         \
    }
DEFINE_ATOMIC(atomic_add, __hip_atomic_fetch_add)
DEFINE_ATOMIC(atomic_sub, __hip_atomic_fetch_sub)
DEFINE_ATOMIC(atomic_and, __hip_atomic_fetch_and)
DEFINE_ATOMIC(atomic_or, __hip_atomic_fetch_or)
DEFINE_ATOMIC(atomic_xor, __hip_atomic_fetch_xor)
DEFINE_ATOMIC(atomic_min, __hip_atomic_fetch_min)
DEFINE_ATOMIC(atomic_max, __hip_atomic_fetch_max)
DEFINE_ATOMIC(atomic_exchange, __hip_atomic_exchange)
#undef DEFINE_ATOMIC
INLINE u32 atomic_inc(u32 *at, u32 limit) {
    return __builtin_amdgcn_atomic_inc32(at, limit, __ATOMIC_RELAXED, "agent");
}
INLINE u32 atomic_dec(u32 *at, u32 limit) {
    return __builtin_amdgcn_atomic_dec32(at, limit, __ATOMIC_RELAXED, "agent");
}
INLINE u64 atomic_inc(u64 *at, u64 limit) {
    return __builtin_amdgcn_atomic_inc64(at, limit, __ATOMIC_RELAXED, "agent");
}
INLINE u64 atomic_dec(u64 *at, u64 limit) {
    return __builtin_amdgcn_atomic_dec64(at, limit, __ATOMIC_RELAXED, "agent");
}
template <class T> INLINE T atomic_load(T *at) {
    return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> INLINE void atomic_store(T *at, T v) {
    __hip_atomic_store(at, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> INLINE bool atomic_swap_if(T *at, T *expected, T v) {
    return __hip_atomic_compare_exchange_strong(
        at, expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
