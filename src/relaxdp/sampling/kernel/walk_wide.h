/* The walk of walk.h, LANES words at a time: the same passes over the same arrays.

   Included by wide.h, after walk.h. */

/* Append to the walkers those of LANES that are in `lanes`. What is written behind them is written over later. */
TARGET static inline size_t append(struct walk *walk, size_t at, unsigned lanes, __m128i who, wide bound, wide value) {
    store_lanes(lanes, walk->who + at, who, walk->bound + at, bound, walk->value + at, value);
    return at + (size_t)__builtin_popcount(lanes);
}

/* Write each word to the row that it is of. */
TARGET static inline void scatter_words(uint64_t *to, const uint16_t *who, wide words) {
    uint64_t word[LANES];
    memcpy(word, &words, sizeof word);
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++) to[who[i]] = word[i];
}

/* The walkers without those of rows from `rows` on: idle lanes of the last group, behind all others. */
static inline size_t without_idle(const struct walk *walk, size_t walkers, size_t rows) {
    while (walkers && walk->who[walkers - 1] >= rows) walkers--;
    return walkers;
}

/* `first_try_one`, without a detour through memory between encryption and what is made of it. */
__attribute__((always_inline)) TARGET static inline int first_try(const struct key *key, struct walk *walk,
                                                                  size_t count, const void *truths, const int width) {
    wide threshold = all_words(walk->level.threshold), last_value = all_words(walk->last_value);
    __m128i who = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);
    chosen rejected = {0};
    size_t walkers = 0;
    for (size_t group = 0; group < count; group += GROUP) {
        const uint8_t *its_truths = (const uint8_t *)truths + group * (size_t)width;
        uint64_t last_truths[GROUP];
        if (__builtin_expect(count - group < GROUP, 0)) { /* behind the last truths is what is not ours */
            memset(last_truths, 0, sizeof last_truths);
            its_truths = memcpy(last_truths, its_truths, (count - group) * (size_t)width);
        }
        wide x[REGISTERS];
#pragma GCC unroll 8
        for (int i = 0; i < REGISTERS; i++) x[i] = load_rows(walk->rows + group, i);
        encrypt_group(key, x);
#pragma GCC unroll 4
        for (int i = 0; i < REGISTERS / 2; i++) {
            size_t at = group + (size_t)(LANES * i);
            wide position = column_of(x + 2 * i, 0), value = column_of(x + 2 * i, 1);
            chosen below = greater(threshold, position);
            store_wide(walk->report + at, choose(below, load_codes(its_truths + LANES * i * width, width), value));
            walkers = append(walk, walkers, bits_of_chosen(below) ^ ((1u << LANES) - 1), who, position, value);
            who = _mm_add_epi16(who, _mm_set1_epi16(LANES));
            rejected |= greater(value, last_value); /* behind the last row, too: no harm */
        }
    }
    walk->walkers = without_idle(walk, walkers, count);
    return bits_of_chosen(rejected) != 0;
}

/* What is known of a walk before it begins, as constants: each kind gets a loop of its own. */
struct kind {
    int digits;     /* so many binary digits a quotient of a word and a bound has, or 0 for more than three */
    int may_reject; /* the number of values is no power of two: some value words are rejected */
};

/* `remainders` where a quotient has few binary digits: from the highest on, each is 1 if so much of the bound fits. */
__attribute__((always_inline)) TARGET static inline wide remainders_of_few(wide word, wide bound, const int digits) {
    for (int digit = digits - 1; digit >= 0; digit--)
        word = subtract_unless(greater(bound, shift_right(word, digit)), word, shift_left(bound, digit));
    return word;
}

/* What LANES words do to as many walkers from `i` on, as in `walk_on_one`; returns which of them stay. */
__attribute__((always_inline)) TARGET static inline unsigned move_walkers(struct walk *walk, const struct kind kind,
                                                                          size_t i, wide word, wide value, wide *bound,
                                                                          wide *kept) {
    wide threshold = all_words(walk->level.threshold), old_bound = load_wide(walk->bound + i);
    wide position = kind.digits ? remainders_of_few(word, old_bound, kind.digits) : remainders(word, old_bound);
    chosen rejected = greater(subtract(word, position), subtract(all_words(0), old_bound));
    if (kind.may_reject) rejected |= greater(value, all_words(walk->last_value));
    chosen below = greater(threshold, position), not_moved = rejected | below;
    *bound = choose(not_moved, old_bound, position);
    *kept = choose(not_moved, load_wide(walk->value + i), value);
    return bits_of_chosen((chosen)(rejected | ~below));
}

__attribute__((always_inline)) TARGET static inline void walk_on_kind(const struct key *key, struct walk *walk,
                                                                      const struct kind kind) {
    for (uint64_t number = 1; walk->walkers; number++) {
        wide try = all_blocks(_mm_set_epi64x((int64_t)(number << 32), 0));
        size_t stay = 0;
        /* Idle lanes of the last group are a row that does not exist. */
        for (size_t i = walk->walkers; i < walk->walkers + GROUP; i++) {
            walk->who[i] = PIECE;
            walk->bound[i] = walk->level.threshold;
        }
        for (size_t group = 0; group < walk->walkers; group += GROUP) {
            wide x[REGISTERS];
#pragma GCC unroll 8
            for (int i = 0; i < REGISTERS; i++) x[i] = try ^ gather_rows(walk->rows, walk->who + group, i);
            encrypt_group(key, x);
#pragma GCC unroll 4
            for (int i = 0; i < REGISTERS / 2; i++) {
                size_t at = group + (size_t)(LANES * i);
                wide bound, kept;
                unsigned lanes = move_walkers(walk, kind, at, column_of(x + 2 * i, 0), column_of(x + 2 * i, 1), &bound,
                                              &kept);
                scatter_words(walk->report, walk->who + at, kept);
                stay = append(walk, stay, lanes, load_who(walk->who + at), bound, kept);
            }
        }
        walk->walkers = without_idle(walk, stay, PIECE);
    }
}

TARGET static void walk_on(const struct key *key, struct walk *walk) {
    uint64_t largest_quotient = UINT64_MAX / walk->level.threshold;
    int may_reject = walk->last_value != UINT64_MAX;
    if (walk->level.threshold < SMALLEST_QUICK_BOUND)
        walk_on_one(key, walk);
    else if (largest_quotient < 4 && may_reject)
        walk_on_kind(key, walk, (struct kind){2, 1});
    else if (largest_quotient < 4)
        walk_on_kind(key, walk, (struct kind){2, 0});
    else if (largest_quotient < 8)
        walk_on_kind(key, walk, (struct kind){3, 1});
    else
        walk_on_kind(key, walk, (struct kind){0, 1});
}
