// Hashes, ciphers and random numbers: long chains of integer operations.
#include "shim/kernel.h"

TABLE u8 md5_turns[] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
// The shape of MD5 (RFC 1321) with constants made by a formula.
KERNEL(like_md5)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
    for (u32 k = 0; k < 64; k++) {
        u32 f, g;
        switch (k / 16) {
        case 0: f = (b & c) | (~b & d); g = k; break;
        case 1: f = (d & b) | (~d & c); g = (5 * k + 1) % 16; break;
        case 2: f = b ^ c ^ d; g = (3 * k + 5) % 16; break;
        default: f = c ^ (b | ~d); g = 7 * k % 16;
        }
        u32 turned = rotl(a + f + k * 0x9e3779b1 + in[(i + g) % n], md5_turns[k / 16 * 4 + k % 4]);
        a = d;
        d = c;
        c = b;
        b += turned;
    }
    out[4 * i] = a;
    out[4 * i + 1] = b;
    out[4 * i + 2] = c;
    out[4 * i + 3] = d;
}
TEST(like_md5, .grid = {128}, .group = {64}, .in = 128, .out = 512);

// SHA-256 (FIPS 180-4) of one block; the constants are the fractions of cube roots, here by a generator.
KERNEL(like_sha256)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), w[16], s[8];
    for (u32 k = 0; k < 16; k++) w[k] = in[(i * 16 + k) % 1024];
    for (u32 k = 0; k < 8; k++) s[k] = 0x6a09e667 * (k + 1);
    for (u32 k = 0; k < 64; k++) {
        if (k >= 16) {
            u32 a = w[(k + 1) % 16], b = w[(k + 14) % 16];
            w[k % 16] += (rotl(a, 25) ^ rotl(a, 14) ^ a >> 3) + w[(k + 9) % 16] + (rotl(b, 15) ^ rotl(b, 13) ^ b >> 10);
        }
        u32 one = s[7] + (rotl(s[4], 26) ^ rotl(s[4], 21) ^ rotl(s[4], 7)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
                  0x428a2f98 * (k + 3) + w[k % 16];
        u32 two = (rotl(s[0], 30) ^ rotl(s[0], 19) ^ rotl(s[0], 10)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (u32 j = 7; j > 0; j--) s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (u32 k = 0; k < 8; k++) out[8 * i + k] = s[k];
}
TEST(like_sha256, .grid = {64}, .group = {64}, .in = 1024, .out = 512);

KERNEL(checksums)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), crc = ~0u, a = 1, b = 0, fowler = 0x811c9dc5;
    const u8 *bytes = (const u8 *)in + i;
    for (u32 k = 0; k < 24; k++) {
        crc ^= bytes[k];
        for (u32 bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        a = (a + bytes[k]) % 65521;
        b = (b + a) % 65521;
        fowler = (fowler ^ bytes[k]) * 0x01000193;
    }
    out[3 * i] = ~crc;
    out[3 * i + 1] = b << 16 | a;
    out[3 * i + 2] = fowler;
}
TEST(checksums, .grid = {128}, .group = {64}, .in = 64, .out = 384);

// By a table of 256 entries that the workgroup makes in LDS.
KERNEL(crc_by_table)(const u32 *in, u32 *out, u32 n) {
    SHARED u32 table[256];
    for (u32 k = local_id(); k < 256; k += group_size()) {
        u32 c = k;
        for (u32 bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
        table[k] = c;
    }
    barrier();
    u32 i = global_id(), crc = ~0u;
    for (u32 k = 0; k < 64; k++) crc = crc >> 8 ^ table[(crc ^ ((const u8 *)in)[i + k]) & 255];
    out[i] = ~crc;
}
TEST(crc_by_table, .grid = {192}, .group = {96}, .in = 64, .out = 192);

KERNEL(murmur)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), h = i, length = 1 + i % 13;
    for (u32 k = 0; k < length; k++)
        h = rotl(h ^ rotl(in[(i + k) % n] * 0xcc9e2d51, 15) * 0x1b873593, 13) * 5 + 0xe6546b64;
    h ^= length * 4;
    h = (h ^ h >> 16) * 0x85ebca6b;
    h = (h ^ h >> 13) * 0xc2b2ae35;
    out[i] = h ^ h >> 16;
}
TEST(murmur, .grid = {256}, .group = {64}, .in = 256, .out = 256);

// 64-bit hashes: xxHash's round and SipHash-2-4's.
KERNEL(hashes_64)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id();
    u64 x = 0x27d4eb2f165667c5 + i, v0 = 0x736f6d6570736575 ^ i, v1 = 0x646f72616e646f6d, v2 = 0x6c7967656e657261 ^ i,
        v3 = 0x7465646279746573;
    auto round = [&] {
        v0 += v1, v1 = rotl64(v1, 13) ^ v0, v0 = rotl64(v0, 32);
        v2 += v3, v3 = rotl64(v3, 16) ^ v2;
        v0 += v3, v3 = rotl64(v3, 21) ^ v0;
        v2 += v1, v1 = rotl64(v1, 17) ^ v2, v2 = rotl64(v2, 32);
    };
    for (u32 k = 0; k < 4; k++) {
        u64 m = get64(in + 2 * ((i + k) % 128));
        x ^= rotl64(m * 0xc2b2ae3d27d4eb4f, 31) * 0x9e3779b185ebca87;
        x = rotl64(x, 27) * 0x9e3779b185ebca87 + 0x85ebca77c2b2ae63;
        v3 ^= m;
        round(), round();
        v0 ^= m;
    }
    v2 ^= 255;
    for (u32 k = 0; k < 4; k++) round();
    put64(out + 4 * i, x ^ x >> 33);
    put64(out + 4 * i + 2, v0 ^ v1 ^ v2 ^ v3);
}
TEST(hashes_64, .grid = {128}, .group = {64}, .in = 256, .out = 512);

KERNEL(chacha)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), s[16], x[16];
    for (u32 k = 0; k < 16; k++) x[k] = s[k] = k == 12 ? i : in[k];
    auto quarter = [&](u32 a, u32 b, u32 c, u32 d) {
        x[a] += x[b], x[d] = rotl(x[d] ^ x[a], 16);
        x[c] += x[d], x[b] = rotl(x[b] ^ x[c], 12);
        x[a] += x[b], x[d] = rotl(x[d] ^ x[a], 8);
        x[c] += x[d], x[b] = rotl(x[b] ^ x[c], 7);
    };
    for (u32 round = 0; round < 4; round++) {
        quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
        quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
    }
    for (u32 k = 0; k < 16; k++) out[16 * i + k] = x[k] + s[k];
}
TEST(chacha, .grid = {64}, .group = {64}, .in = 16, .out = 1024);

// A block cipher of AES's shape: bytes through a table, rows turned, columns mixed in GF(256), keys added.
KERNEL(byte_cipher)(const u32 *in, u32 *out, u32 n) {
    SHARED u8 box[256];
    for (u32 k = local_id(); k < 256; k += group_size()) box[k] = (u8)(k * k * 31 + 7 * k + 99 ^ k >> 3);
    barrier();
    u32 i = global_id();
    u8 state[16], next[16];
    for (u32 k = 0; k < 16; k++) state[k] = ((const u8 *)in)[16 * i + k];
    for (u32 round = 0; round < 5; round++) {
        for (u32 k = 0; k < 16; k++) next[k] = box[state[(k * 5) % 16]];
        for (u32 c = 0; c < 4; c++) {
            u8 *s = next + 4 * c;
            u8 all = s[0] ^ s[1] ^ s[2] ^ s[3], first = s[0];
            for (u32 r = 0; r < 4; r++) {
                u8 pair = s[r] ^ (r == 3 ? first : s[r + 1]);
                u8 doubled = (u8)(pair << 1 ^ (pair & 0x80 ? 0x1b : 0));
                state[4 * c + r] = s[r] ^ all ^ doubled;
            }
        }
        for (u32 k = 0; k < 16; k++) state[k] ^= (u8)(in[k] >> round);
    }
    for (u32 k = 0; k < 16; k++) ((u8 *)out)[16 * i + k] = state[k];
}
TEST(byte_cipher, .grid = {128}, .group = {64}, .in = 512, .out = 512);

KERNEL(random_generators)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i] | 1;
    u64 y = (u64)in[i] << 32 | i | 1, z = y, carry = 12345;
    u64 s0 = y, s1 = ~y, lcg = y;
    u32 pcg = 0;
    for (u32 k = 0; k < 40; k++) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        y ^= y << 13, y ^= y >> 7, y ^= y << 17;
        unsigned __int128 wide = (unsigned __int128)z * 0xfeb344657c0af413 + carry;
        z = (u64)wide, carry = (u64)(wide >> 64);
        u64 t = s0 ^ s1;
        s0 = rotl64(s0, 24) ^ t ^ t << 16, s1 = rotl64(t, 37);
        pcg ^= rotl((u32)((lcg >> 18 ^ lcg) >> 27), 32 - (u32)(lcg >> 59));
        lcg = lcg * 6364136223846793005 + 1442695040888963407;
    }
    out[8 * i] = x;
    out[8 * i + 1] = pcg;
    put64(out + 8 * i + 2, y);
    put64(out + 8 * i + 4, z);
    put64(out + 8 * i + 6, s0 + s1);
}
TEST(random_generators, .grid = {64}, .group = {64}, .in = 64, .out = 512);

// Counter-based: Philox 4x32, ten rounds.
KERNEL(philox)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), c[4] = {i, in[0], in[1], in[2]}, k0 = in[3], k1 = in[4];
    for (u32 round = 0; round < 10; round++) {
        u64 a = (u64)c[0] * 0xd2511f53, b = (u64)c[2] * 0xcd9e8d57;
        u32 n0 = (u32)(b >> 32) ^ c[1] ^ k0, n2 = (u32)(a >> 32) ^ c[3] ^ k1;
        c[0] = n0, c[1] = (u32)b, c[2] = n2, c[3] = (u32)a;
        k0 += 0x9e3779b9, k1 += 0xbb67ae85;
    }
    for (u32 k = 0; k < 4; k++) out[4 * i + k] = c[k];
}
TEST(philox, .grid = {256}, .group = {128}, .in = 8, .out = 1024);

// A quarter of the points of a square, drawn at random.
KERNEL(estimate_of_pi)(const u32 *in, u32 *out, u32 n) {
    u32 i = global_id(), x = in[i] | 1, inside = 0;
    for (u32 k = 0; k < 100; k++) {
        x = x * 1664525 + 1013904223;
        f32 a = (f32)(x >> 8) * 0x1p-24f;
        x = x * 1664525 + 1013904223;
        f32 b = (f32)(x >> 8) * 0x1p-24f;
        if (a * a + b * b < 1.0f) inside++;
    }
    out[i] = inside;
}
TEST(estimate_of_pi, .grid = {128}, .group = {64}, .in = 128, .out = 128);
