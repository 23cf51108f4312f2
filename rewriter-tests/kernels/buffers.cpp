// Memory through buffer descriptors: loads, stores and atomics, in range and out of it, by offsets and by elements.
#include "shim/kernel.h"

#if defined(__gfx1250__) || defined(__gfx1251__)
// Their descriptors are others.
#define BUFFERS 0
#else
#define BUFFERS 1
#endif

#if BUFFERS
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));

#ifdef __AMDGCN__
typedef u32x4 Buffer;
// By the names that the compiler knows operations by; arguments are data, descriptor, element, offsets of the lane and
// of all lanes, caches.
extern "C" u32 load_dword(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.i32");
extern "C" u32x4 load_dwords(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.v4i32");
extern "C" void store_dword(u32, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.i32");
extern "C" void store_dwords(u32x4, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.v4i32");
extern "C" u32 add_dword(u32, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.atomic.add.i32");
extern "C" u32x2 load_pair(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.v2i32");
extern "C" u32x3 load_three(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.v3i32");
extern "C" void store_three(u32x3, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.v3i32");
extern "C" u8 load_byte(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.i8");
extern "C" u16 load_short(Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.load.i16");
extern "C" void store_byte(u8, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.i8");
extern "C" void store_short(u16, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.store.i16");
extern "C" u32 swap_dword(u32, u32, Buffer, u32, u32, u32) __asm("llvm.amdgcn.raw.buffer.atomic.cmpswap.i32");
extern "C" u32 load_of_element(Buffer, u32, u32, u32, u32) __asm("llvm.amdgcn.struct.buffer.load.i32");
extern "C" u32x2 load_pair_of_element(Buffer, u32, u32, u32, u32) __asm("llvm.amdgcn.struct.buffer.load.v2i32");

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
// The same with a choice of what is in range (gfx10 and later), and with elements that are swizzled.
INLINE Buffer selecting(Buffer b, u32 select) {
#if !defined(__GFX8__) && !defined(__GFX9__)
    b.w = b.w & 0xcfffffff | select << 28;
#endif
    return b;
}
INLINE Buffer swizzled(Buffer b) {
#if defined(__GFX10__)
    b.y |= 0x80000000;
#else
    b.y |= 0x40000000;
#endif
    return b;
}
#else
struct Buffer {
    u32 *start;
    u32 stride, records;
    bool is_swizzled;
};
INLINE Buffer buffer(const u32 *start, u32 stride, u32 records) { return {(u32 *)start, stride, records, false}; }
INLINE Buffer selecting(Buffer b, u32) { return b; }
INLINE Buffer swizzled(Buffer b) { return {b.start, b.stride, b.records, true}; }
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
INLINE u32x2 load_pair(Buffer b, u32 offset, u32 scalar, u32) {
    return {load_dword(b, offset, scalar, 0), load_dword(b, offset + 4, scalar, 0)};
}
INLINE u32x3 load_three(Buffer b, u32 offset, u32 scalar, u32) {
    u32x2 two = load_pair(b, offset, scalar, 0);
    return {two.x, two.y, load_dword(b, offset + 8, scalar, 0)};
}
INLINE void store_three(u32x3 value, Buffer b, u32 offset, u32 scalar, u32) {
    for (u32 k = 0; k < 3; k++) store_dword(value[k], b, offset + 4 * k, scalar, 0);
}
template <class Small> INLINE Small load_small(Buffer b, u32 offset) {
    return offset + sizeof(Small) <= b.records ? ((Small *)b.start)[offset / sizeof(Small)] : 0;
}
template <class Small> INLINE void store_small(Small value, Buffer b, u32 offset) {
    if (offset + sizeof(Small) <= b.records) ((Small *)b.start)[offset / sizeof(Small)] = value;
}
INLINE u8 load_byte(Buffer b, u32 offset, u32, u32) { return load_small<u8>(b, offset); }
INLINE u16 load_short(Buffer b, u32 offset, u32, u32) { return load_small<u16>(b, offset); }
INLINE void store_byte(u8 value, Buffer b, u32 offset, u32, u32) { store_small(value, b, offset); }
INLINE void store_short(u16 value, Buffer b, u32 offset, u32, u32) { store_small(value, b, offset); }
// Of places that no other work-item accesses.
INLINE u32 swap_dword(u32 value, u32 compared, Buffer b, u32 offset, u32 scalar, u32) {
    u32 old = load_dword(b, offset, scalar, 0);
    if (old == compared) store_dword(value, b, offset, scalar, 0);
    return old;
}
// Swizzled: a dword of eight elements, then the next one.
INLINE u32 load_of_element(Buffer b, u32 element, u32 offset, u32 scalar, u32) {
    if (element >= b.records || offset + 4 > b.stride) return 0;
    u32 at = b.is_swizzled ? (element / 8 * b.stride + offset) * 8 + element % 8 * 4 : element * b.stride + offset;
    return b.start[(at + scalar) / 4];
}
INLINE u32x2 load_pair_of_element(Buffer b, u32 element, u32 offset, u32 scalar, u32) {
    return {load_of_element(b, element, offset, scalar, 0), load_of_element(b, element, offset + 4, scalar, 0)};
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

// Records that keep nothing out: 4 GiB and 2 GiB.
KERNEL(buffers_without_end)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 0, 0xffffffff), of_out = buffer(out, 0, 0x80000000);
    u32x4 four = load_dwords(of_in, 4 * (i * 5 % 240), 0, 0);
    u32x2 two = load_pair(of_in, 4 * i, 64 * group_id(), 0);
    u32x3 three = load_three(of_in, 12 * (i % 80), 4, 0);
    u32 sum = four.x + 3 * four.y + 5 * four.z + 7 * four.w + 11 * two.x + 13 * two.y;
    store_dword(sum + three.x * 17 + three.y * 19 + three.z * 23, of_out, 4 * i, 0, 0);
    add_dword(sum & 0xff, of_out, 1024 + 4 * (i % 32), 0, 0);
}
TEST(buffers_without_end, .grid = {256}, .group = {64}, .in = 512, .out = 320,
     .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

// Several dwords across the end, at every dword, with a scalar offset; other lanes are all outside.
KERNEL(ends_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 0, 4 * 150), of_out = buffer(out, 0, 4 * 321);
    u32x4 four = load_dwords(of_in, 4 * (i % 64 + 100), 4 * group_id(), 0);
    u32x3 three = load_three(of_in, 4 * (i % 70 + 85), 0, 0);
    u32x2 two = load_pair(of_in, 4 * (149 - i % 3), 0, 0);
    u32 sum = four.x + 3 * four.y + 5 * four.z + 7 * four.w + 11 * two.x + 13 * two.y;
    out[i] = sum + 17 * three.x + 19 * three.y + 23 * three.z;
    u32x3 stored = {i, i + 1, i + 2};
    if (i < 64) store_three(stored, of_out, 12 * i, 4 * 256, 0);
}
TEST(ends_of_buffers, .grid = {256}, .group = {64}, .in = 256, .out = 400, .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

// The last dword of the records is not whole. (On gfx8 that is not defined.)
KERNEL(odd_ends_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 0, 4 * 150 + 2);
    u32x4 four = load_dwords(of_in, 4 * (i % 64 + 100), 0, 0);
    out[i] = four.x + 3 * four.y + 5 * four.z + 7 * four.w + load_dword(of_in, 4 * (i % 16 + 140), 8, 0);
}
TEST(odd_ends_of_buffers, .grid = {128}, .group = {64}, .in = 256, .out = 128, .on = "gfx9* gfx10* gfx11* gfx120*");

// By elements and offsets, with what is in range chosen in three ways; all elements are in range.
KERNEL(chosen_bounds_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), sum = 0;
    for (u32 select = 0; select < 3; select++) {
        Buffer of_in = selecting(buffer(in, 20, 40), select);
        u32x2 two = load_pair_of_element(of_in, i * 7 % 40, 4 * (i % 4), 16 * group_id(), 0);
        sum = sum * 31 + two.x + 3 * two.y + 5 * load_of_element(of_in, i % 40, 4 * (i % 5), 0, 0);
    }
    out[i] = sum;
}
TEST(chosen_bounds_of_buffers, .grid = {256}, .group = {64}, .in = 256, .out = 256,
     .on = "gfx9* gfx10* gfx11* gfx120*");

// Without elements, but with a stride that says what is in range.
KERNEL(strides_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
#ifdef __AMDGCN__
    Buffer of_in = selecting(buffer(in, 600, 1), 0);
#else
    Buffer of_in = buffer(in, 0, 600);
#endif
    u32x4 four = load_dwords(of_in, 4 * (i % 64 + 100), 0, 0);
    out[i] = four.x + 3 * four.y + 5 * four.z + 7 * four.w + load_dword(of_in, 4 * (i % 16 + 140), 0, 0);
}
TEST(strides_of_buffers, .grid = {128}, .group = {64}, .in = 256, .out = 128, .on = "gfx10* gfx11* gfx120*");

// Bytes, shorts, halves of registers, and atomics whose results are used, in range and out of it.
KERNEL(small_accesses_of_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = buffer(in, 0, 4 * 200), of_out = buffer(out, 0, 4 * 500);
    u32 sum = load_byte(of_in, i * 5 % 1000, 0, 0);
    u16x2 pair = {load_short(of_in, 2 * (i * 3 % 450), 0, 0), load_short(of_in, 2 * (i * 7 % 450), 0, 0)};
    sum = sum * 31 + as<u32>(pair);
    store_byte(sum, of_out, 4 * 256 + i, 0, 0);
    store_short(sum, of_out, 4 * 320 + 2 * i, 0, 0);
    if (i < 64) {
        u32 added = sum, old = add_dword(added, of_out, 4 * (448 + i), 0, 0);
        sum = sum * 31 + old;
        sum = sum * 31 + swap_dword(sum, i % 3 ? old + added : i, of_out, 4 * (448 + i), 0, 0);
    }
    out[i] = sum;
}
TEST(small_accesses_of_buffers, .grid = {256}, .group = {64}, .in = 256, .out = 512,
     .on = "gfx8* gfx9* gfx10* gfx11* gfx120*");

// What no check is inserted for: it has to be counted.
KERNEL(swizzled_buffers)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    Buffer of_in = swizzled(buffer(in, 16, 64));
    u32 sum = load_of_element(of_in, i % 64, 4 * (i % 4), 0, 0);
    if (i % 3) sum += 3 * load_of_element(of_in, i * 5 % 80, 8, 0, 0);
    out[i] = sum;
}
TEST(swizzled_buffers, .grid = {256}, .group = {64}, .in = 256, .out = 256, .on = "gfx10* gfx11* gfx120*");
#endif
