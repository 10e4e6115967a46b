/* Hashes of the cells of a column, for distinct.c and labels.c. Equal cells have equal hashes. Cells with equal hashes are
   compared, byte by byte. It needs no AES, so every processor of 64 bits runs the same. */
#include <string.h>

#include "kernel.h"

#define ALL (~UINT64_C(0))

struct cell {
    const uint8_t *first;
    uint64_t length;
};

/* Return 0 where the bytes of a row would be outside of the column. */
static inline int find_cell(const struct column *column, uint64_t row, struct cell *cell) {
    const int32_t *narrow = (const int32_t *)column->offsets + row;
    const int64_t *wide = (const int64_t *)column->offsets + row;
    uint64_t begin = (uint64_t)(column->width == 4 ? narrow[0] : wide[0]);
    uint64_t end = (uint64_t)(column->width == 4 ? narrow[1] : wide[1]);
    if (begin > end || end > column->size) return 0; /* what is negative is too large */
    *cell = (struct cell){column->bytes + begin, end - begin};
    return 1;
}

/* The first 16 bytes of a cell, and zeros behind its end. */
struct start { uint64_t low, high; };

static inline struct start load_start(const struct column *column, struct cell cell) {
    /* Which bytes of `high` belong to a cell of 0, 1, ... bytes; eight places on, of `low`. */
    static const uint64_t kept[25] = {[9] = ALL >> 56, ALL >> 48, ALL >> 40, ALL >> 32, ALL >> 24, ALL >> 16, ALL >> 8,
                                      ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL};
    uint64_t word[2] = {0, 0}, length = cell.length < 16 ? cell.length : 16;
    if (__builtin_expect(column->bytes + column->size - cell.first >= 16, 1)) {
        memcpy(word, cell.first, 16);
        return (struct start){word[0] & kept[length + 8], word[1] & kept[length]};
    }
    memcpy(word, cell.first, length);
    return (struct start){word[0], word[1]};
}

/* `secret` is random words: without them, equal hashes cannot be chosen. The length is spread over a word, so that a cell
   and a longer one, which ends in zeros, do not cancel it. */
static inline uint64_t hash_cell(const struct column *column, struct cell cell, struct start start,
                                 const uint64_t *secret) {
    uint64_t first = (secret[0] + cell.length * UINT64_C(0x9e3779b97f4a7c15)) ^ start.low;
    unsigned __int128 product = (unsigned __int128)first * (secret[1] ^ start.high);
    while (cell.length > 16) {
        cell = (struct cell){cell.first + 16, cell.length - 16};
        start = load_start(column, cell);
        uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);
        product = (unsigned __int128)(hash ^ start.low) * (secret[1] ^ start.high);
    }
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
