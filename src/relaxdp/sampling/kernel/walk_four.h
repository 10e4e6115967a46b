/* The walk of walk.h, four words at a time with AVX2: the same passes over the same arrays.

   Included by vaes.c, after walk.h. */

typedef __m256i four;

/* a > b as unsigned words, as a mask: AVX2 compares signed ones only. */
TARGET static inline four greater(four a, four b) {
    four sign = _mm256_set1_epi64x(INT64_MIN);
    return _mm256_cmpgt_epi64(_mm256_xor_si256(a, sign), _mm256_xor_si256(b, sign));
}

/* Whole numbers up to 2^52 as doubles: put behind the exponent of 2^52, which is then taken away. */
TARGET static inline __m256d doubles(four numbers) {
    four behind = _mm256_add_epi64(numbers, _mm256_set1_epi64x(0x4330000000000000));
    return _mm256_sub_pd(_mm256_castsi256_pd(behind), _mm256_set1_pd(0x1p52));
}

/* `remainder_of` for four words. */
TARGET static inline four remainders(four word, four bound) {
    __m256d above = doubles(_mm256_srli_epi64(word, 12));
    __m256d below = doubles(_mm256_add_epi64(_mm256_srli_epi64(bound, 12), _mm256_set1_epi64x(1)));
    __m256d quotient = _mm256_mul_pd(_mm256_div_pd(above, below), _mm256_set1_pd(1 - 0x1p-50));
    four whole = _mm256_cvtepi32_epi64(_mm256_cvttpd_epi32(quotient));
    four low = _mm256_mul_epu32(whole, bound), high = _mm256_mul_epu32(whole, _mm256_srli_epi64(bound, 32));
    four rest = _mm256_sub_epi64(word, _mm256_add_epi64(low, _mm256_slli_epi64(high, 32)));
    return _mm256_sub_epi64(rest, _mm256_andnot_si256(greater(bound, rest), bound));
}

/* Two blocks side by side. Words 0 of `pair(a, c)` and of `pair(b, d)`, interleaved, are those of a, b, c, d. */
TARGET static inline four pair(const block *low, const block *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(low)), load(high), 1);
}

TARGET static inline four load_four(const uint64_t *from) { return _mm256_loadu_si256((const four *)from); }

TARGET static inline int lanes_of(four mask) { return _mm256_movemask_pd(_mm256_castsi256_pd(mask)); }

/* For each set of lanes, the pairs of parts that they are made of: halves of 64-bit lanes, bytes of 16-bit lanes. */
static const uint8_t parts_of_lanes[16][8] = {
    {0},          {0, 1},             {2, 3},             {0, 1, 2, 3},       {4, 5},       {0, 1, 4, 5},
    {2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {6, 7},             {0, 1, 6, 7},       {2, 3, 6, 7}, {0, 1, 2, 3, 6, 7},
    {4, 5, 6, 7}, {0, 1, 4, 5, 6, 7}, {2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7},
};

/* Append to the walkers those of four that are in `lanes`. What is written behind them is written over later. */
TARGET static inline size_t append(struct walk *walk, size_t at, int lanes, __m128i who, four bound, four value) {
    __m128i parts = _mm_loadl_epi64((const __m128i *)parts_of_lanes[lanes]);
    four halves = _mm256_cvtepu8_epi32(parts);
    _mm_storel_epi64((__m128i *)(walk->who + at), _mm_shuffle_epi8(who, parts));
    _mm256_storeu_si256((four *)(walk->bound + at), _mm256_permutevar8x32_epi32(bound, halves));
    _mm256_storeu_si256((four *)(walk->value + at), _mm256_permutevar8x32_epi32(value, halves));
    return at + (size_t)__builtin_popcount((unsigned)lanes);
}

/* The walkers without those of rows from `rows` on: idle lanes of the last group, behind all others. */
static inline size_t without_idle(const struct walk *walk, size_t walkers, size_t rows) {
    while (walkers && walk->who[walkers - 1] >= rows) walkers--;
    return walkers;
}

/* Four codes as words. */
__attribute__((always_inline)) TARGET static inline four load_codes(const void *codes, const int width, size_t at) {
    const uint8_t *from = (const uint8_t *)codes + at * (size_t)width;
    int32_t bytes;
    switch (width) {
    case 1: memcpy(&bytes, from, 4); return _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(bytes));
    case 2: return _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)from));
    case 4: return _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)from));
    default: return load_four((const uint64_t *)from);
    }
}

/* `first_try_one`, without a detour through memory between encryption and what is made of it. */
__attribute__((always_inline)) TARGET static inline int first_try_four(const struct key *key, struct walk *walk,
                                                                       size_t count, const void *truths,
                                                                       const int width) {
    four threshold = _mm256_set1_epi64x((int64_t)walk->level.threshold);
    four last_value = _mm256_set1_epi64x((int64_t)walk->last_value), rejected = _mm256_setzero_si256();
    __m128i who = _mm_set_epi16(0, 0, 0, 0, 3, 2, 1, 0);
    size_t walkers = 0;
    for (size_t group = 0; group < count; group += GROUP) {
        const void *its_truths = (const uint8_t *)truths + group * (size_t)width;
        uint64_t last_truths[GROUP];
        if (__builtin_expect(count - group < GROUP, 0)) { /* behind the last truths is what is not ours */
            memset(last_truths, 0, sizeof last_truths);
            its_truths = memcpy(last_truths, its_truths, (count - group) * (size_t)width);
        }
        four x[GROUP / 2];
#pragma GCC unroll 4
        for (int i = 0; i < GROUP / 4; i++) {
            const block *rows = walk->rows + group + 4 * i;
            x[2 * i] = pair(rows, rows + 2);
            x[2 * i + 1] = pair(rows + 1, rows + 3);
        }
        encrypt_group(key, x);
#pragma GCC unroll 4
        for (int i = 0; i < GROUP / 4; i++) {
            size_t at = group + 4 * i;
            four position = _mm256_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
            four value = _mm256_unpackhi_epi64(x[2 * i], x[2 * i + 1]), below = greater(threshold, position);
            four report = _mm256_blendv_epi8(value, load_codes(its_truths, width, 4 * i), below);
            _mm256_store_si256((four *)(walk->report + at), report);
            walkers = append(walk, walkers, lanes_of(below) ^ 15, who, position, value);
            who = _mm_add_epi16(who, _mm_set1_epi16(4));
            rejected = _mm256_or_si256(rejected, greater(value, last_value)); /* behind the last row, too: no harm */
        }
    }
    walk->walkers = without_idle(walk, walkers, count);
    return !_mm256_testz_si256(rejected, rejected);
}

/* What is known of a walk before it begins, as constants: each kind gets a loop of its own. */
struct kind {
    int digits;     /* so many binary digits a quotient of a word and a bound has, or 0 for more than three */
    int may_reject; /* the number of values is no power of two: some value words are rejected */
};

/* `remainders` where a quotient has few binary digits: from the highest on, each is 1 if so much of the bound fits. */
__attribute__((always_inline)) TARGET static inline four remainders_of_few(four word, four bound, const int digits) {
    for (int digit = digits - 1; digit >= 0; digit--) {
        four too_large = greater(bound, _mm256_srli_epi64(word, digit));
        word = _mm256_sub_epi64(word, _mm256_andnot_si256(too_large, _mm256_slli_epi64(bound, digit)));
    }
    return word;
}

/* What four words do to four walkers from `i` on, as in `walk_on_one`; returns which of them stay. */
__attribute__((always_inline)) TARGET static inline int move_four(struct walk *walk, const struct kind kind, size_t i,
                                                                  four word, four value, four *bound, four *kept) {
    four threshold = _mm256_set1_epi64x((int64_t)walk->level.threshold);
    four last_value = _mm256_set1_epi64x((int64_t)walk->last_value);
    four old_bound = load_four(walk->bound + i), old_value = load_four(walk->value + i);
    four position = kind.digits ? remainders_of_few(word, old_bound, kind.digits) : remainders(word, old_bound);
    four run = _mm256_sub_epi64(word, position), last_run = _mm256_sub_epi64(_mm256_setzero_si256(), old_bound);
    four rejected = greater(run, last_run);
    if (kind.may_reject) rejected = _mm256_or_si256(rejected, greater(value, last_value));
    four below = greater(threshold, position), not_moved = _mm256_or_si256(rejected, below);
    *bound = _mm256_blendv_epi8(position, old_bound, not_moved);
    *kept = _mm256_blendv_epi8(value, old_value, not_moved);
    return lanes_of(_mm256_andnot_si256(rejected, below)) ^ 15;
}

__attribute__((always_inline)) TARGET static inline void walk_on_kind(const struct key *key, struct walk *walk,
                                                                      const struct kind kind) {
    for (uint64_t number = 1; walk->walkers; number++) {
        four try = _mm256_set_epi64x((int64_t)(number << 32), 0, (int64_t)(number << 32), 0);
        size_t stay = 0;
        /* Idle lanes of the last group are a row that does not exist. */
        for (size_t i = walk->walkers; i < walk->walkers + GROUP; i++) {
            walk->who[i] = PIECE;
            walk->bound[i] = walk->level.threshold;
        }
        for (size_t group = 0; group < walk->walkers; group += GROUP) {
            four x[GROUP / 2];
#pragma GCC unroll 4
            for (int i = 0; i < GROUP / 4; i++) {
                const uint16_t *who = walk->who + group + 4 * i;
                x[2 * i] = _mm256_xor_si256(try, pair(walk->rows + who[0], walk->rows + who[2]));
                x[2 * i + 1] = _mm256_xor_si256(try, pair(walk->rows + who[1], walk->rows + who[3]));
            }
            encrypt_group(key, x);
#pragma GCC unroll 4
            for (int i = 0; i < GROUP / 4; i++) {
                size_t at = group + 4 * i;
                four word = _mm256_unpacklo_epi64(x[2 * i], x[2 * i + 1]);
                four value = _mm256_unpackhi_epi64(x[2 * i], x[2 * i + 1]), bound, kept;
                int lanes = move_four(walk, kind, at, word, value, &bound, &kept);
                __m128i who = _mm_loadl_epi64((const __m128i *)(walk->who + at));
                __m128i low = _mm256_castsi256_si128(kept), high = _mm256_extracti128_si256(kept, 1);
                walk->report[walk->who[at]] = (uint64_t)_mm_cvtsi128_si64(low);
                walk->report[walk->who[at + 1]] = (uint64_t)_mm_extract_epi64(low, 1);
                walk->report[walk->who[at + 2]] = (uint64_t)_mm_cvtsi128_si64(high);
                walk->report[walk->who[at + 3]] = (uint64_t)_mm_extract_epi64(high, 1);
                stay = append(walk, stay, lanes, who, bound, kept);
            }
        }
        walk->walkers = without_idle(walk, stay, PIECE);
    }
}

TARGET static void walk_on_four(const struct key *key, struct walk *walk) {
    uint64_t largest_quotient = UINT64_MAX / walk->level.threshold;
    int may_reject = walk->last_value != UINT64_MAX;
    if (largest_quotient < 4 && may_reject)
        walk_on_kind(key, walk, (struct kind){2, 1});
    else if (largest_quotient < 4)
        walk_on_kind(key, walk, (struct kind){2, 0});
    else if (largest_quotient < 8)
        walk_on_kind(key, walk, (struct kind){3, 1});
    else
        walk_on_kind(key, walk, (struct kind){0, 1});
}
