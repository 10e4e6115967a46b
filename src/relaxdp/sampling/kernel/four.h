/* Registers of 32 bytes with AVX2, for wide.h and what it includes: two blocks, or four words.

   Included by vaes.c. */
#include <immintrin.h>

#define WRITE_BYTES(words, count, values, codes) 0 /* without products of words it would be slower */
enum { LANES = 4, REGISTERS = 8, GROUP = 16 };

typedef __m256i wide;
typedef __m256i chosen; /* lanes, as masks */

TARGET static inline wide all_words(uint64_t word) { return _mm256_set1_epi64x((int64_t)word); }
TARGET static inline wide all_blocks(__m128i block) { return _mm256_broadcastsi128_si256(block); }
TARGET static inline wide load_wide(const void *from) { return _mm256_loadu_si256((const wide *)from); }
TARGET static inline void store_wide(void *to, wide x) { _mm256_storeu_si256((wide *)to, x); }
TARGET static inline wide encrypt_round(wide x, wide key) { return _mm256_aesenc_epi128(x, key); }
TARGET static inline wide encrypt_last(wide x, wide key) { return _mm256_aesenclast_epi128(x, key); }
TARGET static inline wide add(wide a, wide b) { return _mm256_add_epi64(a, b); }
TARGET static inline wide subtract(wide a, wide b) { return _mm256_sub_epi64(a, b); }
TARGET static inline wide shift_left(wide a, int by) { return _mm256_slli_epi64(a, by); }
TARGET static inline wide shift_right(wide a, int by) { return _mm256_srli_epi64(a, by); }
TARGET static inline wide shuffle_bytes(wide a, wide order) { return _mm256_shuffle_epi8(a, order); }
TARGET static inline wide choose(chosen a, wide yes, wide no) { return _mm256_blendv_epi8(no, yes, a); }
TARGET static inline unsigned bits_of_chosen(chosen a) { return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(a)); }

/* a > b as unsigned words: AVX2 compares signed ones only. */
TARGET static inline chosen greater(wide a, wide b) {
    wide sign = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

/* a - b, or a where it is kept. */
TARGET static inline wide subtract_unless(chosen kept, wide a, wide b) {
    return _mm256_sub_epi64(a, _mm256_andnot_si256(kept, b));
}

/* Whole numbers up to 2^52 as doubles: put behind the exponent of 2^52, which is then taken away. */
TARGET static inline __m256d doubles(wide numbers) {
    wide behind = _mm256_add_epi64(numbers, _mm256_set1_epi64x(0x4330000000000000));
    return _mm256_sub_pd(_mm256_castsi256_pd(behind), _mm256_set1_pd(0x1p52));
}

/* `remainder_of` for four words. */
TARGET static inline wide remainders(wide word, wide bound) {
    __m256d above = doubles(_mm256_srli_epi64(word, 12));
    __m256d below = doubles(_mm256_add_epi64(_mm256_srli_epi64(bound, 12), _mm256_set1_epi64x(1)));
    __m256d quotient = _mm256_mul_pd(_mm256_div_pd(above, below), _mm256_set1_pd(1 - 0x1p-50));
    wide whole = _mm256_cvtepi32_epi64(_mm256_cvttpd_epi32(quotient));
    wide low = _mm256_mul_epu32(whole, bound), high = _mm256_mul_epu32(whole, _mm256_srli_epi64(bound, 32));
    wide rest = _mm256_sub_epi64(word, _mm256_add_epi64(low, _mm256_slli_epi64(high, 32)));
    return subtract_unless(greater(bound, rest), rest, bound);
}

TARGET static inline wide two_blocks(const block *low, const block *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(low)), load(high), 1);
}

/* Register i of rows, one after the other or anywhere. Rows a, b, c, d are (a, c) and (b, d): so their words are in
   order as soon as they are interleaved (`column_of`: words 0 or words 1). */
TARGET static inline wide load_rows(const block *rows, int i) {
    return two_blocks(rows + i / 2 * 4 + i % 2, rows + i / 2 * 4 + i % 2 + 2);
}

TARGET static inline wide gather_rows(const block *rows, const uint16_t *who, int i) {
    who += i / 2 * 4 + i % 2;
    return two_blocks(rows + who[0], rows + who[2]);
}

TARGET static inline wide column_of(const wide x[2], int number) {
    return number ? _mm256_unpackhi_epi64(x[0], x[1]) : _mm256_unpacklo_epi64(x[0], x[1]);
}

/* Two registers of rows whose words these are, one after the other. */
TARGET static inline void make_rows(wide x[2], wide first, wide second) {
    first = _mm256_permute4x64_epi64(first, 0xd8), second = _mm256_permute4x64_epi64(second, 0xd8);
    x[0] = _mm256_unpacklo_epi64(first, second), x[1] = _mm256_unpackhi_epi64(first, second);
}

TARGET static inline __m128i load_who(const uint16_t *who) { return _mm_loadl_epi64((const __m128i *)who); }

/* For each set of lanes, the pairs of parts that they are made of: halves of 64-bit lanes, bytes of 16-bit lanes. */
static const uint8_t parts_of_lanes[16][8] = {
    {0},          {0, 1},             {2, 3},             {0, 1, 2, 3},       {4, 5},       {0, 1, 4, 5},
    {2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {6, 7},             {0, 1, 6, 7},       {2, 3, 6, 7}, {0, 1, 2, 3, 6, 7},
    {4, 5, 6, 7}, {0, 1, 4, 5, 6, 7}, {2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7},
};

/* Write those of four walkers that are in `lanes`, one after the other, and anything behind them. */
TARGET static inline void store_lanes(unsigned lanes, uint16_t *to_who, __m128i who, uint64_t *to_bound, wide bound,
                                      uint64_t *to_value, wide value) {
    __m128i parts = _mm_loadl_epi64((const __m128i *)parts_of_lanes[lanes]);
    wide halves = _mm256_cvtepu8_epi32(parts);
    _mm_storel_epi64((__m128i *)to_who, _mm_shuffle_epi8(who, parts));
    store_wide(to_bound, _mm256_permutevar8x32_epi32(bound, halves));
    store_wide(to_value, _mm256_permutevar8x32_epi32(value, halves));
}

/* Four codes as words. */
__attribute__((always_inline)) TARGET static inline wide load_codes(const uint8_t *from, const int width) {
    int32_t bytes;
    switch (width) {
    case 1: memcpy(&bytes, from, 4); return _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
    case 2: return _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)from));
    case 4: return _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)from));
    default: return load_wide(from);
    }
}
