/* Registers of 64 bytes with AVX-512, for wide.h and what it includes: four blocks, or eight words.

   Included by avx512.c. Each function is what four.h says of the one with the same name. */
#include <immintrin.h>

enum { LANES = 8, REGISTERS = 8, GROUP = 32 };

typedef __m512i wide;
typedef __mmask8 chosen;

TARGET static inline wide all_words(uint64_t word) { return _mm512_set1_epi64((int64_t)word); }
TARGET static inline wide all_blocks(__m128i block) { return _mm512_broadcast_i32x4(block); }
TARGET static inline wide load_wide(const void *from) { return _mm512_loadu_si512(from); }
TARGET static inline wide load_rows(const block *rows, int i) { return load_wide(rows + 4 * i); }
TARGET static inline void store_wide(void *to, wide x) { _mm512_storeu_si512(to, x); }
TARGET static inline wide encrypt_round(wide x, wide key) { return _mm512_aesenc_epi128(x, key); }
TARGET static inline wide encrypt_last(wide x, wide key) { return _mm512_aesenclast_epi128(x, key); }
TARGET static inline wide add(wide a, wide b) { return _mm512_add_epi64(a, b); }
TARGET static inline wide subtract(wide a, wide b) { return _mm512_sub_epi64(a, b); }
TARGET static inline wide shift_left(wide a, unsigned by) { return _mm512_slli_epi64(a, by); }
TARGET static inline wide shift_right(wide a, unsigned by) { return _mm512_srli_epi64(a, by); }
TARGET static inline wide shuffle_bytes(wide a, wide order) { return _mm512_shuffle_epi8(a, order); }
TARGET static inline wide choose(chosen a, wide yes, wide no) { return _mm512_mask_blend_epi64(a, no, yes); }
TARGET static inline unsigned bits_of_chosen(chosen a) { return a; }
TARGET static inline chosen greater(wide a, wide b) { return _mm512_cmpgt_epu64_mask(a, b); }

TARGET static inline wide subtract_unless(chosen kept, wide a, wide b) {
    return _mm512_mask_sub_epi64(a, (chosen)~kept, a, b);
}

/* Here the quotient is rounded down whatever it is made of: so it is never too large, as in `remainder_of`. */
TARGET static inline wide remainders(wide word, wide bound) {
    __m512d above = _mm512_cvt_roundepu64_pd(word, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __m512d below = _mm512_cvt_roundepu64_pd(bound, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    __m512d quotient = _mm512_div_round_pd(above, below, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    wide rest = subtract(word, _mm512_mullo_epi64(_mm512_cvttpd_epu64(quotient), bound));
    return _mm512_min_epu64(rest, subtract(rest, bound));
}

TARGET static inline wide gather_rows(const block *rows, const uint16_t *who, int i) {
    who += 4 * i;
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load(rows + who[0])), load(rows + who[1]), 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load(rows + who[2])), load(rows + who[3]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

TARGET static inline wide column_of(const wide x[2], int number) {
    wide even = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), odd = _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi64(x[0], number ? odd : even, x[1]);
}

TARGET static inline void make_rows(wide x[2], wide first, wide second) {
    x[0] = _mm512_permutex2var_epi64(first, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), second);
    x[1] = _mm512_permutex2var_epi64(first, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), second);
}

TARGET static inline __m128i load_who(const uint16_t *who) { return _mm_loadu_si128((const __m128i *)who); }

TARGET static inline void store_lanes(unsigned lanes, uint16_t *to_who, __m128i who, uint64_t *to_bound, wide bound,
                                      uint64_t *to_value, wide value) {
    _mm_storeu_si128((__m128i *)to_who, _mm_maskz_compress_epi16((chosen)lanes, who));
    store_wide(to_bound, _mm512_maskz_compress_epi64((chosen)lanes, bound));
    store_wide(to_value, _mm512_maskz_compress_epi64((chosen)lanes, value));
}

__attribute__((always_inline)) TARGET static inline wide load_codes(const uint8_t *from, const int width) {
    int64_t bytes;
    switch (width) {
    case 1: memcpy(&bytes, from, 8); return _mm512_cvtepu8_epi64(_mm_set1_epi64x(bytes)); /* GCC 12 fails on others */
    case 2: return _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)from));
    case 4: return _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)from));
    default: return load_wide(from);
    }
}

/* Write words mod values, from 2 to 256, as codes. Returns how many: those of whole registers. */
#define WRITE_BYTES write_bytes
TARGET static size_t write_bytes(const uint64_t *words, size_t count, uint64_t values, uint8_t *codes) {
    wide bound = all_words(values), fold = all_words((UINT64_C(1) << 32) % values);
    size_t done = 0;
    for (; count - done >= LANES; done += LANES) { /* first a word below 2^41 that has the same remainder */
        wide word = load_wide(words + done), high = _mm512_mul_epu32(shift_right(word, 32), fold);
        wide rest = remainders(add(high, word & all_words(UINT32_MAX)), bound);
        _mm_storel_epi64((__m128i *)(codes + done), _mm512_cvtepi64_epi8(rest));
    }
    return done;
}
