// Memory through buffer descriptors: loads, stores and atomics, in range and out of it, by offsets and by elements.
#include "shim/kernel.h"

#if defined(__gfx1250__) || defined(__gfx1251__)
// Their descriptors are others.
#define BUFFERS 0
#else
#define BUFFERS 1
#endif

#if BUFFERS
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

#ifdef __AMDGCN__
typedef u32x4 Buffer;
// By the names that the compiler knows operations by; arguments are data, descriptor, element, offsets of the lane and
// of all lanes, caches.
extern "C" u32 load_dword(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.i32");
extern "C" u32x4 load_dwords(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.v4i32");
extern "C" void store_dword(u32, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.i32");
extern "C" void store_dwords(u32x4, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.v4i32");
extern "C" u32 add_dword(u32, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.atomic.add.i32");
extern "C" u32 load_of_element(Buffer, u32, u32, u32, u32) __asm("llvm.amdgcn.struct.buffer.load.i32");

// Elements of `stride` bytes; 0 for bytes. What is in range of elements is chosen by the element and its bytes.
INLINE Buffer buffer(const u32 *start, u32 stride, u32 records) {
    u64 address = (u64)start;
#if defined(__GFX8__) || defined(__GFX9__)
    u32 last = 0x00027000;
#else
    u32 last = stride ? 0x01004000 : 0x31004000;
#endif
    return Buffer{(u32)address, (u32)(address >> 32) & 0xffff | stride << 16, records, last};
}
#else
struct Buffer {
    u32 *start;
    u32 stride, records;
};
INLINE Buffer buffer(const u32 *start, u32 stride, u32 records) { return {(u32 *)start, stride, records}; }
INLINE u32 load_dword(Buffer b, u32 offset, u32 scalar, u32) {
    u64 at = (u64)offset + scalar;
    return at + 4 <= b.records ? b.start[at / 4] : 0;
}
INLINE u32x4 load_dwords(Buffer b, u32 offset, u32 scalar, u32) {
    u32x4 value;
    for (u32 k = 0; k < 4; k++) value[k] = load_dword(b, offset + 4 * k, scalar, 0);
    return value;
}
INLINE void store_dword(u32 value, Buffer b, u32 offset, u32 scalar, u32) {
    u64 at = (u64)offset + scalar;
    if (at + 4 <= b.records) b.start[at / 4] = value;
}
INLINE void store_dwords(u32x4 value, Buffer b, u32 offset, u32 scalar, u32) {
    for (u32 k = 0; k < 4; k++) store_dword(value[k], b, offset + 4 * k, scalar, 0);
}
INLINE u32 add_dword(u32 value, Buffer b, u32 offset, u32 scalar, u32) {
    u64 at = (u64)offset + scalar;
    return at + 4 <= b.records ? atomic_add(&b.start[at / 4], value) : 0;
}
INLINE u32 load_of_element(Buffer b, u32 element, u32 offset, u32, u32) {
    return element < b.records && offset + 4 <= b.stride ? b.start[(element * b.stride + offset) / 4] : 0;
}
#endif

// Lanes at places that are in no order, some of them beyond the end; a scalar offset in every other load.
KERNEL(buffer_loads)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 0, 4 * 200);
    u32 sum = load_dword(of_in, 4 * (i * 7 % 256), 0, 0);
    sum = sum * 31 + load_dword(of_in, 4 * i + 16, 4 * group_id(), 0);
    u32x4 four = load_dwords(of_in, 16 * (i % 64), 0, 0);
    out[i] = sum * 31 + four.x + 3 * four.y + 5 * four.z + 7 * four.w;
}
TEST(buffer_loads, .grid = {256}, .group = {64}, .in = 256, .out = 256, .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

KERNEL(buffer_stores)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), value = in[i];
    Buffer of_out = buffer(out, 0, 4 * 1000);
    if (value & 1) {
        store_dword(value, of_out, 4 * i, 0, 0);
    } else {
        u32x4 four = {value, ~value, value * 3, i};
        store_dwords(four, of_out, 16 * (i - 64 * group_id()), 1024 * (1 + group_id()), 0);
    }
}
TEST(buffer_stores, .grid = {128}, .group = {64}, .in = 128, .out = 1024, .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

KERNEL(buffer_atomics)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_out = buffer(out, 0, 4 * 60);
    add_dword(in[i], of_out, 4 * (in[i] % 64), 0, 0);
}
TEST(buffer_atomics, .grid = {256}, .group = {64}, .in = 256, .out = 64, .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

// Elements of 12 bytes, some beyond the last. (On gfx8 records are bytes, with a stride, too.)
KERNEL(elements_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 12, 70);
    out[i] = load_of_element(of_in, i * 5 % 80, 4, 0, 0) + 3 * load_of_element(of_in, i, 8, 0, 0);
}
TEST(elements_of_buffers, .grid = {256}, .group = {64}, .in = 256, .out = 256, .on = "gfx9* gfx10* gfx11* gfx120*");
#endif
