/* The walks of the compiled path with prepared words in the place of a cipher: a row is the number of its object and of
   the try. So a test meets what no random word does: a rejected value word, a position that equals the threshold. */
#define TARGET __attribute__((target("avx2")))
#include <immintrin.h>

enum { WIDTH = 32 };
#include "blocks.h"

enum { GROUP = 16 };

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

TARGET static void encrypt_group(const struct key *key, __m256i x[GROUP / 2]) {
    for (int i = 0; i < GROUP / 2; i++) {
        __m128i low = encrypt_one(key, _mm256_castsi256_si128(x[i]));
        __m128i high = encrypt_one(key, _mm256_extracti128_si256(x[i], 1));
        x[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    }
}

#include "messages.h"
#include "walk.h"
#include "walk_four.h"

static int by_four;

TARGET static int first_try(const struct key *key, struct walk *walk, size_t count, const void *truths, int width) {
    (void)width; /* all codes are words here */
    return by_four ? first_try_four(key, walk, count, truths, 8) : first_try_one(key, walk, count, truths, 8);
}

TARGET static void walk_on(const struct key *key, struct walk *walk) {
    if (by_four && walk->level.threshold >= SMALLEST_QUICK_BOUND)
        walk_on_four(key, walk);
    else
        walk_on_one(key, walk);
}

static size_t integer_rows(const struct key *key, const struct messages *of, uint64_t first, const uint64_t *index,
                           block *rows, size_t count) {
    (void)key, (void)of, (void)first, (void)index, (void)rows, (void)count;
    return 0;
}

#include "path.h"

/* Messages of no blocks leave a state of zeros, so the index of an object alone is its row: its number. */
__attribute__((visibility("default"))) void fed_draw(int four, const block *prepared, uint64_t objects, uint64_t tries,
                                                     uint64_t threshold, uint64_t values, const uint64_t *numbers,
                                                     uint64_t *target) {
    struct key key = {prepared, objects, tries, {{0, 0}}};
    struct level level = {threshold, values};
    struct messages none = {.count = objects};
    struct codes codes = {target, 8};
    by_four = four;
    draw((const uint8_t *)&key, &level, &none, numbers, 1, codes);
}

/* word mod bound, by the ways that are not a division. `digits`: 2 or 3 if no quotient has more, else 0. */
__attribute__((visibility("default"))) TARGET void fed_remainders(const uint64_t *words, const uint64_t *bounds,
                                                                  uint64_t *one, uint64_t *four, uint64_t count,
                                                                  int digits) {
    for (uint64_t i = 0; i < count; i++) one[i] = remainder_of(words[i], bounds[i]);
    for (uint64_t i = 0; i + 4 <= count; i += 4) {
        __m256i word = load_four(words + i), bound = load_four(bounds + i);
        __m256i rest = digits == 2   ? remainders_of_few(word, bound, 2)
                       : digits == 3 ? remainders_of_few(word, bound, 3)
                                     : remainders(word, bound);
        _mm256_storeu_si256((__m256i *)(four + i), rest);
    }
}
