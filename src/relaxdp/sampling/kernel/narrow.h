/* The path with one block in a register, eight at a time, because each round waits for the one before.

   Included by aesni.c and neon.c, each of which says first what TARGET and INSTRUCTIONS are. */
enum { WIDTH = 16, FEW = 24 };
#include "aes.h"

enum { GROUP = 8 };

TARGET static inline void encrypt_group(const struct key *key, __m128i x[GROUP]) {
#pragma GCC unroll 8
    for (int lane = 0; lane < GROUP; lane++) x[lane] = _mm_xor_si128(x[lane], key->round[0]);
    for (int round = 1; round < ROUNDS; round++)
#pragma GCC unroll 8
        for (int lane = 0; lane < GROUP; lane++) x[lane] = _mm_aesenc_si128(x[lane], key->round[round]);
#pragma GCC unroll 8
    for (int lane = 0; lane < GROUP; lane++) x[lane] = _mm_aesenclast_si128(x[lane], key->round[ROUNDS]);
}

/* Encrypt `count` rows, rounded up to whole groups. */
TARGET static void encrypt_rows(const struct key *key, const block *from, block *to, size_t count) {
    for (size_t i = 0; i < count; i += GROUP) {
        __m128i x[GROUP];
#pragma GCC unroll 8
        for (int lane = 0; lane < GROUP; lane++) x[lane] = load(from + i + lane);
        encrypt_group(key, x);
#pragma GCC unroll 8
        for (int lane = 0; lane < GROUP; lane++) store(to + i + lane, x[lane]);
    }
}

#include "messages.h"
#include "walk.h"

__attribute__((always_inline)) TARGET static inline int first_try(const struct key *key, struct walk *walk,
                                                                  size_t count, const void *truths, const int width) {
    return first_try_one(key, walk, count, truths, width);
}

TARGET static void walk_on(const struct key *key, struct walk *walk) { walk_on_one(key, walk); }

static size_t integer_rows(const struct key *key, const struct messages *of, uint64_t first, const uint64_t *index,
                           block *rows, size_t count) {
    (void)key, (void)of, (void)first, (void)index, (void)rows, (void)count;
    return 0;
}

#define WRITE_BYTES(words, count, values, codes) 0
#include "path.h"
#include "tags.h"

/* Encrypt `count` numbers of 16 bytes, the highest first, whose lower halves are `first` and those after it. They are
   made where they are encrypted, and never written. */
TARGET static void encrypt_counters(const struct key *key, uint64_t high, uint64_t first, block *to, size_t count) {
    int64_t top = (int64_t)__builtin_bswap64(high);
    for (size_t i = 0; i < count; i += GROUP) {
        __m128i x[GROUP];
#pragma GCC unroll 8
        for (int lane = 0; lane < GROUP; lane++)
            x[lane] = _mm_set_epi64x((int64_t)__builtin_bswap64(first + i + (size_t)lane), top);
        encrypt_group(key, x);
#pragma GCC unroll 8
        for (int lane = 0; lane < GROUP; lane++) store(to + i + lane, x[lane]);
    }
}

#include "keystream.h"

/* WIDTH bytes that are 0 or 255, as bits. */
TARGET static inline uint32_t bits_of(const lanes *bytes) { return (uint32_t)_mm_movemask_epi8((__m128i)*bytes); }

/* The larger of each two of WIDTH bytes. */
TARGET static inline void raise_to(lanes *largest, const lanes *bytes) {
    *largest = (lanes)_mm_max_epu8((__m128i)*largest, (__m128i)*bytes);
}

#include "step.h"
#include "histogram.h"

const struct instructions INSTRUCTIONS = {draw, tags, step, histogram};
