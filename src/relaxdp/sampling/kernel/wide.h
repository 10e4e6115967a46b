/* The path with several blocks in a register, eight registers at a time, and walks of as many words as a register has.

   Included by vaes.c and avx512.c, after TARGET, INSTRUCTIONS and what is done with registers. */
__attribute__((always_inline)) TARGET static inline void encrypt_group(const struct key *key, wide x[REGISTERS]) {
#pragma GCC unroll 8
    for (int i = 0; i < REGISTERS; i++) x[i] ^= all_blocks(key->round[0]);
#pragma GCC unroll 13
    for (int round = 1; round < ROUNDS; round++) {
        wide round_key = all_blocks(key->round[round]);
#pragma GCC unroll 8
        for (int i = 0; i < REGISTERS; i++) x[i] = encrypt_round(x[i], round_key);
    }
#pragma GCC unroll 8
    for (int i = 0; i < REGISTERS; i++) x[i] = encrypt_last(x[i], all_blocks(key->round[ROUNDS]));
}

__attribute__((always_inline)) TARGET static inline void store_group(block *rows, const wide x[REGISTERS]) {
#pragma GCC unroll 8
    for (int i = 0; i < REGISTERS; i++) store_wide(rows + LANES / 2 * i, x[i]);
}

/* Encrypt `count` rows, rounded up to whole groups. */
TARGET static void encrypt_rows(const struct key *key, const block *from, block *to, size_t count) {
    for (size_t done = 0; done < count; done += GROUP) {
        wide x[REGISTERS];
#pragma GCC unroll 8
        for (int i = 0; i < REGISTERS; i++) x[i] = load_wide(from + done + LANES / 2 * i);
        encrypt_group(key, x);
        store_group(to + done, x);
    }
}

#include "messages.h"
#include "walk.h"
#include "walk_wide.h"
#include "integers_wide.h"
#include "path.h"
#include "tags.h"

/* Encrypt `count` numbers of 16 bytes, the highest first, whose lower halves are `first` and those after it. They are
   made where they are encrypted, and never written. */
TARGET static void encrypt_counters(const struct key *key, uint64_t high, uint64_t first, block *to, size_t count) {
    const wide reversed = all_blocks(_mm_set_epi64x(0x08090a0b0c0d0e0f, 0x0001020304050607));
    static const block next[4] = {{{0, 0}}, {{0, 1}}, {{0, 2}}, {{0, 3}}};
    wide number = add(all_blocks(_mm_set_epi64x((int64_t)first, (int64_t)high)), load_wide(next));
    for (size_t done = 0; done < count; done += GROUP) {
        wide x[REGISTERS];
#pragma GCC unroll 8
        for (int i = 0; i < REGISTERS; i++) {
            x[i] = shuffle_bytes(number, reversed);
            number = add(number, all_blocks(_mm_set_epi64x(LANES / 2, 0)));
        }
        encrypt_group(key, x);
        store_group(to + done, x);
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

const struct instructions INSTRUCTIONS = {draw, tags, step, histogram};
