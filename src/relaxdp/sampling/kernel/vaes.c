/* The path with VAES and AVX2: two blocks in a register, sixteen at a time, and walks four words at a time. */
#if defined(__x86_64__) || defined(_M_X64)
#define TARGET __attribute__((target("aes,vaes,avx2,popcnt")))
enum { WIDTH = 32, FEW = 48 };
#include "aes.h"

#include <immintrin.h>

enum { GROUP = 16 };

TARGET static inline __m256i both(__m128i round_key) { return _mm256_broadcastsi128_si256(round_key); }

TARGET static inline void encrypt_group(const struct key *key, __m256i x[GROUP / 2]) {
#pragma GCC unroll 8
    for (int pair = 0; pair < GROUP / 2; pair++) x[pair] = _mm256_xor_si256(x[pair], both(key->round[0]));
#pragma GCC unroll 13
    for (int round = 1; round < ROUNDS; round++) {
        __m256i round_key = both(key->round[round]);
#pragma GCC unroll 8
        for (int pair = 0; pair < GROUP / 2; pair++) x[pair] = _mm256_aesenc_epi128(x[pair], round_key);
    }
#pragma GCC unroll 8
    for (int pair = 0; pair < GROUP / 2; pair++) x[pair] = _mm256_aesenclast_epi128(x[pair], both(key->round[ROUNDS]));
}

/* Encrypt `count` rows, rounded up to whole groups. */
TARGET static void encrypt_rows(const struct key *key, const block *from, block *to, size_t count) {
    for (size_t i = 0; i < count; i += GROUP) {
        __m256i x[GROUP / 2];
#pragma GCC unroll 8
        for (int pair = 0; pair < GROUP / 2; pair++)
            x[pair] = _mm256_loadu_si256((const __m256i *)(from + i + 2 * pair));
        encrypt_group(key, x);
#pragma GCC unroll 8
        for (int pair = 0; pair < GROUP / 2; pair++) _mm256_storeu_si256((__m256i *)(to + i + 2 * pair), x[pair]);
    }
}

#include "messages.h"
#include "walk.h"
#include "walk_four.h"
#include "integers_four.h"

__attribute__((always_inline)) TARGET static inline int first_try(const struct key *key, struct walk *walk,
                                                                  size_t count, const void *truths, const int width) {
    return first_try_four(key, walk, count, truths, width);
}

TARGET static void walk_on(const struct key *key, struct walk *walk) {
    if (walk->level.threshold >= SMALLEST_QUICK_BOUND)
        walk_on_four(key, walk);
    else
        walk_on_one(key, walk);
}

TARGET static size_t integer_rows(const struct key *key, const struct messages *of, uint64_t first,
                                  const uint64_t *index, block *rows, size_t count) {
    if (!of->integers || of->more_blocks) return 0;
    integer_rows_four(key, of, first, index, rows, count / GROUP);
    return count / GROUP * GROUP;
}

#include "path.h"
#include "tags.h"

/* Encrypt `count` numbers of 16 bytes, the highest first, whose lower halves are `first` and those after it. They are
   made where they are encrypted, and never written. */
TARGET static void encrypt_counters(const struct key *key, uint64_t high, uint64_t first, block *to, size_t count) {
    const four reversed = both(_mm_set_epi64x(0x08090a0b0c0d0e0f, 0x0001020304050607));
    four number = _mm256_set_epi64x((int64_t)(first + 1), (int64_t)high, (int64_t)first, (int64_t)high);
    for (size_t i = 0; i < count; i += GROUP) {
        four x[GROUP / 2];
#pragma GCC unroll 8
        for (int pair = 0; pair < GROUP / 2; pair++) {
            x[pair] = _mm256_shuffle_epi8(number, reversed);
            number = _mm256_add_epi64(number, _mm256_set_epi64x(2, 0, 2, 0));
        }
        encrypt_group(key, x);
#pragma GCC unroll 8
        for (int pair = 0; pair < GROUP / 2; pair++) _mm256_storeu_si256((four *)(to + i + 2 * pair), x[pair]);
    }
}

#include "keystream.h"

/* WIDTH bytes that are 0 or 255, as bits. */
TARGET static inline uint32_t bits_of(const lanes *bytes) {
    return (uint32_t)_mm256_movemask_epi8((__m256i)*bytes);
}

/* The larger of each two of WIDTH bytes. */
TARGET static inline void raise_to(lanes *largest, const lanes *bytes) {
    *largest = (lanes)_mm256_max_epu8((__m256i)*largest, (__m256i)*bytes);
}

#include "step.h"
#include "histogram.h"

const struct instructions vaes_instructions = {draw, tags, step, histogram};
#endif
