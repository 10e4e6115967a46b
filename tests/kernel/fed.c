/* The walks of the compiled path with prepared words in the place of a cipher: a row is the number of its object and of
   the try. So a test meets what no random word does: a rejected value word, a position that equals the threshold.

   WORDS: how many the walk takes at a time, 1, 4 or 8. */
#if WORDS == 8
#define TARGET __attribute__((target("vaes,avx2,avx512bw,avx512dq,avx512vl,avx512vbmi2,popcnt")))
#else
#define TARGET __attribute__((target("vaes,avx2,popcnt")))
#endif

enum { WIDTH = 32 };
#include "blocks.h"
#if WORDS == 8
#include "eight.h"
#else
#include "four.h"
#endif

struct key {
    const block *prepared; /* tries of object 0, tries of object 1, ... */
    uint64_t objects, tries;
    block subkey;
};

static void make_key(struct key *key, const uint8_t *bytes) { memcpy(key, bytes, sizeof *key); }

TARGET static __m128i encrypt_one(const struct key *key, __m128i row) {
    block asked;
    store(&asked, row);
    uint64_t object = asked.word[0], number = asked.word[1] >> 32;
    /* Idle lanes ask for objects that do not exist, and what they are told must not matter. */
    if (object >= key->objects || number >= key->tries) return _mm_set1_epi32(-1);
    return load(key->prepared + object * key->tries + number);
}

TARGET static void encrypt_rows(const struct key *key, const block *from, block *to, size_t count) {
    for (size_t i = 0; i < count; i++) store(to + i, encrypt_one(key, load(from + i)));
}

TARGET static void encrypt_group(const struct key *key, wide x[REGISTERS]) {
    block rows[GROUP];
    memcpy(rows, x, sizeof rows);
    encrypt_rows(key, rows, rows, GROUP);
    memcpy(x, rows, sizeof rows);
}

#include "messages.h"
#include "walk.h"
#if WORDS > 1
#include "walk_wide.h"
#else
#define first_try first_try_one
#define walk_on walk_on_one
#endif

static size_t integer_rows(const struct key *key, const struct messages *of, uint64_t first, const uint64_t *index,
                           block *rows, size_t count) {
    (void)key, (void)of, (void)first, (void)index, (void)rows, (void)count;
    return 0;
}

#include "path.h"

/* Messages of no blocks leave a state of zeros, so the index of an object alone is its row: its number. */
__attribute__((visibility("default"))) void fed_draw(const block *prepared, uint64_t objects, uint64_t tries,
                                                     uint64_t threshold, uint64_t values, const uint64_t *numbers,
                                                     uint64_t *target) {
    struct key key = {prepared, objects, tries, {{0, 0}}};
    struct level level = {threshold, values};
    struct messages none = {.count = objects};
    struct codes codes = {target, 8};
    draw((const uint8_t *)&key, &level, &none, numbers, 1, codes);
}

/* word mod bound, by the ways that are not a division. `digits`: 2 or 3 if no quotient has more, else 0. */
__attribute__((visibility("default"))) TARGET void fed_remainders(const uint64_t *words, const uint64_t *bounds,
                                                                  uint64_t *rests, uint64_t count, int digits) {
#if WORDS > 1
    for (uint64_t i = 0; i + LANES <= count; i += LANES) {
        wide word = load_wide(words + i), bound = load_wide(bounds + i);
        store_wide(rests + i, digits == 2   ? remainders_of_few(word, bound, 2)
                              : digits == 3 ? remainders_of_few(word, bound, 3)
                                            : remainders(word, bound));
    }
#else
    (void)digits;
    for (uint64_t i = 0; i < count; i++) rests[i] = remainder_of(words[i], bounds[i]);
#endif
}
