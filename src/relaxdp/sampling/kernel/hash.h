/* Columns as Arrow has them, and hashes of their cells. Equal cells have equal hashes. A hash decides nothing by itself:
   whatever it finds is compared, cell by cell.

   Included by distinct.c and labels.c. It needs no AES, so every processor of 64 bits runs the same. */
#include <string.h>

#include "kernel.h"

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
struct start {
    uint64_t low, high;
};

/* Which bytes of the second word belong to a cell of 0, 1, ... bytes; eight places on, of the first. */
static const uint64_t KEPT[25] = {
    0,         0,          0,            0,              0,  0,  0,  0,  0,  0xff, 0xffff, 0xffffff, 0xffffffff,
    (1ull << 40) - 1, (1ull << 48) - 1, (1ull << 56) - 1, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};

static inline struct start load_start(const struct column *column, struct cell cell) {
    uint64_t word[2] = {0, 0}, length = cell.length < 16 ? cell.length : 16;
    if (__builtin_expect(column->bytes + column->size - cell.first >= 16, 1)) {
        memcpy(word, cell.first, 16);
        return (struct start){word[0] & KEPT[length + 8], word[1] & KEPT[length]};
    }
    memcpy(word, cell.first, length);
    return (struct start){word[0], word[1]};
}

/* Both halves of a product of 128 bits, together. */
static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* `secret` is two random words: without them, equal hashes cannot be chosen. */
static inline uint64_t hash_cell(const struct column *column, struct cell cell, struct start start,
                                 const uint64_t *secret) {
    uint64_t hash = fold(cell.length ^ secret[0] ^ start.low, secret[1] ^ start.high);
    while (cell.length > 16) {
        cell.first += 16;
        cell.length -= 16;
        start = load_start(column, cell);
        hash = fold(hash ^ start.low, secret[1] ^ start.high);
    }
    return hash;
}
