/* The walks of objects whose first position is at or above the threshold: try after try, until a position is below it.

   Included by narrow.h and wide.h, after messages.h. */

struct walk {
    struct level level;
    uint64_t last_value; /* value words above it are rejected */
    uint64_t reciprocal; /* floor((2^64 - 1) / values) */
    size_t walkers;
    /* Of walker i: which row it is, its position so far, and the value word of its last draw. */
    _Alignas(64) uint16_t who[PIECE + GROUP];
    _Alignas(64) uint64_t bound[PIECE + GROUP];
    _Alignas(64) uint64_t value[PIECE + GROUP];
    /* Of row i: what is encrypted for try 0; and the value word of the last draw so far, or the truth if there is none.
       Both are the report modulo the number of values. */
    _Alignas(64) block rows[PIECE + GROUP];
    _Alignas(64) uint64_t report[PIECE + GROUP];
    _Alignas(64) block room[PIECE + GROUP];
};

/* From this threshold on a quotient of two words, as floating-point numbers have it, is at most one too small. */
#define SMALLEST_QUICK_BOUND (UINT64_C(1) << 44)

/* word mod bound, for a bound of at least SMALLEST_QUICK_BOUND: a division of 64 bits takes several times as long.

   The first 52 bits of a word are exact as a double. Word is rounded down, bound up, and the factor covers what the
   division itself may round up: so the quotient is never too large. It is below 2^20, and each of the three errors is
   below 2^-31 of it: so it is at most one too small. */
static inline uint64_t remainder_of(uint64_t word, uint64_t bound) {
    double quotient = (double)(int64_t)(word >> 12) / (double)(int64_t)((bound >> 12) + 1);
    word -= (uint64_t)(int64_t)(quotient * (1 - 0x1p-50)) * bound;
    return word - (bound & (0 - (uint64_t)(word >= bound)));
}

static void begin_walks(struct walk *walk, const struct level *level) {
    walk->level = *level;
    walk->last_value = ~((0 - level->values) % level->values);
    walk->reciprocal = ~UINT64_C(0) / level->values;
    walk->walkers = 0;
}

/* The words of one row at one try. */
TARGET static inline block words_of(const struct key *key, const block *row, uint64_t number) {
    block words;
    store(&words, encrypt_one(key, _mm_xor_si128(load(row), _mm_set_epi64x((int64_t)(number << 32), 0))));
    return words;
}

/* The rule of docs/stream.md, word by word, for a row whose first value word was rejected: one in 2^64 / values. */
TARGET static void walk_alone(const struct key *key, struct walk *walk, size_t row, uint64_t truth) {
    uint64_t bound = 0; /* stands for 2^64 */
    walk->report[row] = truth;
    for (uint64_t number = 0; number >> 32 == 0; number++) {
        block words = words_of(key, walk->rows + row, number);
        uint64_t position = bound ? words.word[0] % bound : words.word[0];
        if (words.word[1] > walk->last_value || (bound && words.word[0] - position > 0 - bound)) continue;
        if (position < walk->level.threshold) return;
        walk->report[row] = words.word[1];
        bound = position;
    }
}

/* Code i of an array of codes. */
static inline uint64_t code(const void *codes, int width, size_t i) {
    switch (width) {
    case 1: return ((const uint8_t *)codes)[i];
    case 2: return ((const uint16_t *)codes)[i];
    case 4: return ((const uint32_t *)codes)[i];
    default: return ((const uint64_t *)codes)[i];
    }
}

/* Draw try 0 of `count` rows: who walks on, and who keeps the truth? Returns whether a value word was rejected. `width`
   is a constant where this is called. */
__attribute__((always_inline)) TARGET static inline int first_try_one(const struct key *key, struct walk *walk,
                                                                      size_t count, const void *truths,
                                                                      const int width) {
    uint64_t rejected = 0;
    size_t walkers = 0;
    encrypt_rows(key, walk->rows, walk->room, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t position = walk->room[i].word[0], value = walk->room[i].word[1];
        uint64_t above = position >= walk->level.threshold, truth = code(truths, width, i);
        walk->report[i] = truth ^ ((truth ^ value) & (0 - above));
        walk->who[walkers] = (uint16_t)i;
        walk->bound[walkers] = position;
        walk->value[walkers] = value;
        walkers += above;
        rejected |= value > walk->last_value;
    }
    walk->walkers = walkers;
    return rejected != 0;
}

/* Follow all walkers to their ends, one word at a time. A word that lies in the last, incomplete run of `bound` words,
   or whose value word does, is rejected: the walker stays where it is and tries again. */
TARGET static inline void walk_on_one(const struct key *key, struct walk *walk) {
    uint64_t threshold = walk->level.threshold, last_value = walk->last_value;
    int quick = threshold >= SMALLEST_QUICK_BOUND;
    for (uint64_t number = 1; walk->walkers; number++) {
        for (size_t i = 0; i < walk->walkers; i++)
            store(walk->room + i, _mm_xor_si128(load(walk->rows + walk->who[i]),
                                                _mm_set_epi64x((int64_t)(number << 32), 0)));
        encrypt_rows(key, walk->room, walk->room, walk->walkers);
        size_t stay = 0;
        for (size_t i = 0; i < walk->walkers; i++) {
            uint64_t word = walk->room[i].word[0], value = walk->room[i].word[1], bound = walk->bound[i];
            uint64_t position = quick ? remainder_of(word, bound) : word % bound;
            int accepted = (word - position <= 0 - bound) & (value <= last_value);
            int above = position >= threshold;
            /* Masks, because nobody can foresee these words: a branch would be wrong half of the time. */
            uint64_t moved = 0 - (uint64_t)(accepted & above);
            uint16_t who = walk->who[i];
            uint64_t kept = (value & moved) | (walk->value[i] & ~moved);
            walk->report[who] = kept;
            walk->who[stay] = who;
            walk->bound[stay] = (position & moved) | (bound & ~moved);
            walk->value[stay] = kept;
            stay += above | !accepted;
        }
        walk->walkers = stay;
    }
}
