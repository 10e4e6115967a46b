/* Registers of 16 bytes: x86-64's own names for what is done with them, and what the same is on 64-bit Arm. */
#ifndef RELAXDP_VECTORS_H
#define RELAXDP_VECTORS_H

#if defined(__aarch64__)
#include <arm_neon.h>

typedef long long __m128i __attribute__((vector_size(16), may_alias));

#define BYTES(x) ((uint8x16_t)(x))
#define ARM static inline __attribute__((always_inline))

ARM __m128i _mm_setzero_si128(void) { return (__m128i){0, 0}; }
ARM __m128i _mm_set_epi64x(int64_t high, int64_t low) { return (__m128i){low, high}; }
ARM __m128i _mm_loadu_si128(const __m128i *from) { return (__m128i)vld1q_u8((const uint8_t *)from); }
ARM __m128i _mm_load_si128(const __m128i *from) { return _mm_loadu_si128(from); }
ARM void _mm_storeu_si128(__m128i *to, __m128i x) { vst1q_u8((uint8_t *)to, BYTES(x)); }
ARM void _mm_store_si128(__m128i *to, __m128i x) { _mm_storeu_si128(to, x); }
ARM __m128i _mm_xor_si128(__m128i x, __m128i y) { return x ^ y; }
ARM __m128i _mm_or_si128(__m128i x, __m128i y) { return x | y; }
ARM __m128i _mm_and_si128(__m128i x, __m128i y) { return x & y; }
ARM __m128i _mm_max_epu8(__m128i x, __m128i y) { return (__m128i)vmaxq_u8(BYTES(x), BYTES(y)); }
ARM __m128i _mm_cmpeq_epi8(__m128i x, __m128i y) { return (__m128i)vceqq_u8(BYTES(x), BYTES(y)); }
ARM __m128i _mm_cmpeq_epi32(__m128i x, __m128i y) { return (__m128i)vceqq_s32((int32x4_t)x, (int32x4_t)y); }

/* Both narrow with saturation, the lanes of `x` first. */
ARM __m128i _mm_packs_epi32(__m128i x, __m128i y) {
    return (__m128i)vcombine_s16(vqmovn_s32((int32x4_t)x), vqmovn_s32((int32x4_t)y));
}
ARM __m128i _mm_packus_epi16(__m128i x, __m128i y) {
    return (__m128i)vcombine_u8(vqmovun_s16((int16x8_t)x), vqmovun_s16((int16x8_t)y));
}

/* The highest bit of every byte: each byte keeps one bit of its own, and eight of them add up to a byte. */
ARM int _mm_movemask_epi8(__m128i x) {
    const uint8x16_t own = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t kept = vandq_u8((uint8x16_t)vshrq_n_s8((int8x16_t)x, 7), own);
    return vaddv_u8(vget_low_u8(kept)) | vaddv_u8(vget_high_u8(kept)) << 8;
}

#define _mm_slli_si128(x, bytes) ((__m128i)vextq_u8(vdupq_n_u8(0), BYTES(x), 16 - (bytes)))
/* Only with one word for all: 0xff is the last, 0xaa the one before it. */
#define _mm_shuffle_epi32(x, which) ((__m128i)vdupq_laneq_u32((uint32x4_t)(x), (which) & 3))

#ifdef TARGET /* whoever includes this encrypts */
/* A round here XORs its key before it substitutes, and there after it has mixed: so this key is zero, and the other is
   XORed behind. Compilers make one instruction of that and of the zero of the round after it. */
TARGET ARM __m128i _mm_aesenc_si128(__m128i x, __m128i key) {
    return (__m128i)vaesmcq_u8(vaeseq_u8(BYTES(x), vdupq_n_u8(0))) ^ key;
}
TARGET ARM __m128i _mm_aesenclast_si128(__m128i x, __m128i key) {
    return (__m128i)vaeseq_u8(BYTES(x), vdupq_n_u8(0)) ^ key;
}

/* The last word, substituted, and the same rotated with a constant: all that key expansion reads. Rows are shifted on the
   way, which does nothing to four equal columns. */
TARGET ARM __m128i _mm_aeskeygenassist_si128(__m128i x, uint32_t constant) {
    uint32x4_t four = vdupq_laneq_u32((uint32x4_t)x, 3);
    uint32_t word = vgetq_lane_u32((uint32x4_t)vaeseq_u8((uint8x16_t)four, vdupq_n_u8(0)), 0);
    uint32_t rotated = (word >> 8 | word << 24) ^ constant;
    return (__m128i)(uint32x4_t){0, 0, word, rotated};
}

#endif
#else
#include <wmmintrin.h>
#endif

#endif
