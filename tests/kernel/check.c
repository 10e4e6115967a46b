/* `make kernel-check`: the compiled path under AddressSanitizer and UndefinedBehaviorSanitizer.

   Buffers are exactly as large as they must be and begin at odd places, so that a single byte too much is seen. Every
   set of instructions that the processor has must give the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

int relaxdp_best(void);
uint64_t relaxdp_draw(int set, const uint8_t *key, const struct level *level, const struct messages *messages,
                      const uint64_t *index, uint64_t symbols, void *target, uint64_t width);
uint64_t relaxdp_tags(int set, const uint8_t *key, const struct messages *messages, const uint64_t *index,
                      const uint64_t *symbol, uint64_t *first_words, uint64_t *sums);

uint64_t relaxdp_step(int set, const uint8_t *seed, const struct step *law, const struct columns *columns,
                      uint64_t most, uint8_t *room, uint32_t *places, struct reached *reached);
int relaxdp_letters(const uint32_t *points, uint64_t count, uint64_t width, int64_t *offsets, uint8_t *letters);
int relaxdp_distinct(const struct column *ids, const uint64_t *secret, uint64_t bits, uint64_t capacity,
                     uint64_t *hashes, uint64_t *fills, uint64_t *table);
uint64_t relaxdp_labels(const struct column *values, const struct column *cells, uint64_t bits, void *slots,
                        uint64_t *places);
void relaxdp_histogram(int set, const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts);

/* The first of the sets that a processor has whose best one this is. */
static int least(int best) { return best == NEON ? NEON : AESNI; }

static uint64_t state = 88172645463325252;

static uint64_t next(void) { /* a small generator: nothing that is drawn here is released */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint64_t below(uint64_t bound) { return next() % bound; }

/* Exactly `size` bytes at a place that is `align` apart from an aligned one: what ends the array is the end of the
   allocation. */
static void *exactly(void **allocation, size_t size, size_t align) {
    *allocation = malloc(size + align);
    if (!*allocation) exit(2);
    uint8_t *first = (uint8_t *)*allocation + align;
    for (size_t i = 0; i < size; i++) first[i] = (uint8_t)next();
    return first;
}

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "kernel-check: %s\n", what);
    exit(1);
}

/* Messages of any kind, in three allocations. */
static struct messages some_messages(uint64_t count, void **taken) {
    uint64_t kind = below(3);
    struct messages messages = {.count = count};
    if (kind == 0) {
        messages.integers = exactly(&taken[0], 8 * count, 8);
        messages.is_unsigned = below(2);
    } else if (kind == 1) {
        int64_t *offsets = exactly(&taken[0], 8 * (count + 1), 8);
        uint64_t longest = 1 + below(70), size = below(4);
        for (uint64_t i = 0; i <= count; i++) {
            offsets[i] = (int64_t)size;
            size += i < count ? below(longest) : 0;
        }
        messages.offsets = offsets;
        messages.bytes = exactly(&taken[1], size, below(16));
        messages.size = size;
        messages.tag = 3;
    }
    messages.more_blocks = kind == 2 || below(2) ? 1 + below(3) : 0;
    if (messages.more_blocks) messages.more = exactly(&taken[2], 16 * count * messages.more_blocks, 8);
    return messages;
}

static void check_case(int best) {
    void *taken[8] = {0};
    static const uint64_t counts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025, 2500};
    uint64_t count = below(3) ? counts[below(13)] : below(3000), width = UINT64_C(1) << below(4);
    uint64_t symbols = below(3) ? 1 : 1 + below(40);
    struct messages messages = some_messages(count, taken);
    uint64_t *index = exactly(&taken[3], 8 * count, 8), *symbol = exactly(&taken[4], 8 * count, 8);
    uint8_t *key = exactly(&taken[5], 32, below(16));
    struct level level = {next() >> below(30) | 1, 2 + below(UINT64_C(1) << (8 * width < 40 ? 8 * width - 1 : 40))};
    uint64_t size = count * symbols * width, *words = exactly(&taken[6], 8 * count, 8), sums[2];
    const uint64_t *its_index = below(2) ? index : NULL;
    uint8_t *first_reports = NULL;
    uint64_t first_sums[2] = {0, 0};
    for (int set = least(best); set <= best; set++) {
        void *allocation;
        uint8_t *target = exactly(&allocation, size, width);
        memset(target, 1, size);
        expect(relaxdp_draw(set, key, &level, &messages, index, symbols, target, width) == 0, "a row was refused");
        memset(sums, 0, sizeof sums);
        expect(relaxdp_tags(set, key, &messages, its_index, symbol, words, sums) == 0, "a tag was refused");
        if (set == least(best)) {
            first_reports = malloc(size + 1);
            if (!first_reports) exit(2);
            memcpy(first_reports, target, size);
            memcpy(first_sums, sums, sizeof sums);
        }
        expect(memcmp(first_reports, target, size) == 0, "two sets of instructions draw different reports");
        expect(memcmp(first_sums, sums, sizeof sums) == 0, "two sets of instructions make different tags");
        free(allocation);
    }
    free(first_reports);
    for (int i = 0; i < 8; i++) free(taken[i]);
}

static struct chance some_chance(void) {
    struct chance chance = {{next(), next()}, {(uint8_t)next(), (uint8_t)next()}, {0, 1}, below(4) == 0};
    return chance;
}

/* Steps and histograms of bytes. Every byte could be a tie: `places` has room for that. */
static void check_bytes(int best) {
    void *taken[8] = {0};
    uint64_t count = 1 + below(below(3) ? 100 : 20000), values = 2 + below(255), expected[256] = {0};
    uint64_t most = below(2) ? count : 1 + below(count);
    uint8_t *lower = exactly(&taken[0], count, below(32)), *upper = exactly(&taken[1], count, below(32));
    for (uint64_t i = 0; i < count; i++) {
        lower[i] = (uint8_t)(lower[i] % values);
        upper[i] = below(2) ? lower[i] : (uint8_t)(upper[i] % values);
        expected[lower[i]]++;
    }
    uint8_t *seed = exactly(&taken[2], 48, below(16)), *first = exactly(&taken[3], count, 0);
    struct step law = {values, some_chance(), some_chance()};
    struct reached begin = {below(1000), 0}, first_reached = begin;
    uint64_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = lower[i] > largest ? lower[i] : largest;
        largest = upper[i] > largest ? upper[i] : largest;
    }
    for (int set = least(best); set <= best; set++) {
        uint8_t *result = exactly(&taken[4], count, below(32)), *room = exactly(&taken[5], most, below(32));
        uint32_t *places = exactly(&taken[6], 4 * (most + 2), 4);
        struct columns columns = {lower, upper, result, count};
        struct reached reached = begin;
        expect(relaxdp_step(set, seed, &law, &columns, most, room, places, &reached) == count, "a step was not taken");
        expect(reached.largest == largest, "the largest code is another one");
        if (set == least(best)) {
            memcpy(first, result, count);
            first_reached = reached;
        }
        expect(first_reached.position == reached.position, "two sets of instructions read different bytes");
        expect(memcmp(first, result, count) == 0, "two sets of instructions draw different steps");
        uint64_t counts[256] = {0};
        relaxdp_histogram(set, lower, count, values, counts);
        expect(memcmp(counts, expected, 8 * values) == 0, "a histogram is wrong");
        for (int i = 4; i < 7; i++) free(taken[i]);
    }
    for (int i = 0; i < 4; i++) free(taken[i]);
}

/* Text of NumPy: rows of letters, now and then something else, in arrays that end where the last row ends. */
static void check_text(void) {
    void *taken[3];
    uint64_t count = 1 + below(50), width = 1 + below(40), size = 0;
    uint32_t *points = exactly(&taken[0], 4 * count * width, 4 * below(4));
    int64_t *offsets = exactly(&taken[1], 8 * (count + 1), 8);
    uint8_t *letters = exactly(&taken[2], count * width + 16, below(16));
    for (uint64_t row = 0; row < count; row++) {
        uint64_t length = below(width + 1);
        for (uint64_t i = 0; i < width; i++) points[row * width + i] = i < length ? 1 + (uint32_t)below(127) : 0;
        size += length;
    }
    uint32_t *last = points + count * width - 1;
    expect(relaxdp_letters(points, count, width, offsets, letters), "letters were refused");
    expect(offsets[0] == 0 && offsets[count] == (int64_t)size, "letters are missing");
    for (uint64_t row = 0; row < count; row++)
        for (int64_t i = offsets[row]; i < offsets[row + 1]; i++)
            expect(letters[i] == points[row * width + (uint64_t)(i - offsets[row])], "a letter is another one");
    *last = 200;
    expect(!relaxdp_letters(points, count, width, offsets, letters), "what is no letter was taken");
    for (int i = 0; i < 3; i++) free(taken[i]);
}

/* Text of any length, in arrays that end where it ends. Texts of different rows differ in their first four bytes. */
static struct column some_text(uint64_t count, uint64_t longest, void **taken) {
    struct column column = {.count = count, .width = below(2) ? 4 : 8, .size = below(4)};
    uint64_t width = column.width, *ends = exactly(&taken[0], 8 * (count + 1), 0);
    uint8_t *offsets = exactly(&taken[1], width * (count + 1), 8);
    for (uint64_t row = 0; row <= count; row++) {
        ends[row] = column.size;
        memcpy(offsets + width * row, &column.size, width);
        column.size += row < count ? 4 + below(longest) : 0;
    }
    uint8_t *bytes = exactly(&taken[2], column.size, below(16));
    for (uint32_t row = 0; row < count; row++) memcpy(bytes + ends[row], &row, 4);
    column.offsets = offsets;
    column.bytes = bytes;
    return column;
}

static int has_only_distinct(const struct column *ids, uint64_t bits, uint64_t capacity) {
    void *taken[4];
    uint64_t *secret = exactly(&taken[0], 24, 8), *table = exactly(&taken[1], 8 << 14, 8);
    uint64_t *hashes = exactly(&taken[2], (8 * capacity) << bits, 8), *fills = exactly(&taken[3], UINT64_C(8) << bits, 8);
    memset(fills, 0, UINT64_C(8) << bits);
    int distinct = relaxdp_distinct(ids, secret, bits, capacity, hashes, fills, table);
    for (int i = 0; i < 4; i++) free(taken[i]);
    return distinct;
}

static void check_columns(void) {
    void *taken[4];
    uint64_t count = below(3) ? below(40) : below(9000), bits = below(6), capacity = 200 + 2 * (count >> bits);
    uint64_t *numbers = exactly(&taken[3], 8 * (count + 1), 8), first = next();
    for (uint64_t i = 0; i <= count; i++) numbers[i] = first + (i << bits);
    struct column integers = {.count = count, .integers = numbers};
    if (capacity >= 1 << 14) capacity = (1 << 14) - 1;
    int fits = 2 * (count >> bits) < capacity;
    expect(!fits || has_only_distinct(&integers, bits, capacity), "distinct numbers were taken for equal ones");
    if (count > 1) numbers[below(count - 1)] = numbers[count - 1];
    expect(count < 2 || !has_only_distinct(&integers, bits, capacity), "an equal number was not seen");
    expect(!count || !has_only_distinct(&integers, bits, 0), "a number was put where there is no room");
    struct column text = some_text(count, 60, taken);
    expect(!fits || has_only_distinct(&text, bits, capacity), "distinct texts were taken for equal ones");

    uint64_t few = 1 + below(50), slots = 8;
    struct column values = text;
    if (few < values.count) values.count = few;
    struct column cells = {.count = values.count, .offsets = text.offsets, .width = text.width, .bytes = text.bytes,
                           .size = text.size};
    void *room[2];
    uint64_t *table = exactly(&room[0], 32 << slots, 8), *places = exactly(&room[1], 8 * cells.count, 8);
    memset(table, 0, 32 << slots);
    expect(relaxdp_labels(&values, &cells, slots, table, places) == cells.count, "a value was not found");
    for (uint64_t i = 0; i < cells.count; i++) expect(places[i] == i, "a value was found in another place");
    memset(table, 0, 32 << slots);
    if (text.count > values.count) { /* the text behind the values is none of them */
        cells.count = values.count + 1;
        void *more;
        places = exactly(&more, 8 * cells.count, 8);
        expect(relaxdp_labels(&values, &cells, slots, table, places) == values.count, "what is no value was found");
        free(more);
    }
    if (count) {
        int64_t outside = below(2) ? -1 : (int64_t)(text.size + 1 + below(1000));
        memcpy((uint8_t *)taken[1] + 8 + text.width * count, &outside, text.width);
        expect(!has_only_distinct(&text, bits, capacity), "a text outside of its column was read");
    }
    for (int i = 0; i < 2; i++) free(room[i]);
    for (int i = 0; i < 4; i++) free(taken[i]);
}

int main(int count, char **words) {
    int best = relaxdp_best(), cases = count > 1 ? atoi(words[1]) : 1500;
    if (best == NONE) {
        puts("kernel-check: this processor has no AES instructions, so there is nothing to check");
        return 0;
    }
    static const char *const names[] = {"", "aesni", "aesni and vaes", "aesni, vaes and avx512", "neon"};
    for (int i = 0; i < cases; i++) {
        check_case(best);
        check_bytes(best);
        check_text();
        check_columns();
    }
    printf("kernel-check: %d cases with %s: nothing was read or written that should not be\n", cases,
           names[best]);
    return 0;
}
