/* Columns as Arrow has them, and hashes of their cells. Equal cells have equal hashes. A hash decides nothing by itself:
   whatever it finds is compared, cell by cell.

   Included by distinct.c and labels.c. It needs no AES, so every processor of 64 bits runs the same. */
#include <string.h>

#include "kernel.h"

/* Whole numbers, or bytes of any length if `integers` is NULL. */
struct column {
    uint64_t count;
    const uint64_t *integers;
    const void *offsets; /* count + 1 of them */
    uint64_t width;      /* bytes of an offset: 4 or 8 */
    const uint8_t *bytes;
    uint64_t size; /* how many bytes there are in all: nothing beyond is read, whatever the offsets say */
};

struct cell {
    const uint8_t *first;
    uint64_t length;
};

/* Return 0 where the bytes of a row would be outside of the column. */
static inline int find_cell(const struct column *column, uint64_t row, struct cell *cell) {
    uint64_t begin, end;
    if (column->width == 4) {
        const int32_t *offsets = (const int32_t *)column->offsets + row;
        begin = (uint64_t)(int64_t)offsets[0], end = (uint64_t)(int64_t)offsets[1];
    } else {
        const uint64_t *offsets = (const uint64_t *)column->offsets + row;
        begin = offsets[0], end = offsets[1];
    }
    if (begin > end || end > column->size) return 0; /* what is negative is too large */
    *cell = (struct cell){column->bytes + begin, end - begin};
    return 1;
}

/* Load the first 16 bytes of a cell, zeros behind its end. */
static inline void load_start(const struct column *column, struct cell cell, uint64_t word[2]) {
    static const uint8_t kept[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t length = cell.length < 16 ? cell.length : 16, mask[2];
    if (__builtin_expect(column->bytes + column->size - cell.first >= 16, 1)) {
        memcpy(word, cell.first, 16);
        memcpy(mask, kept + 16 - length, 16);
        word[0] &= mask[0];
        word[1] &= mask[1];
    } else {
        word[0] = word[1] = 0;
        memcpy(word, cell.first, length);
    }
}

/* Both halves of a product of 128 bits, together. */
static inline uint64_t fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* `word` is the start of the cell. `secret` is three random words: without them, equal hashes cannot be chosen. */
static inline uint64_t hash_cell(const struct column *column, struct cell cell, uint64_t word[2],
                                 const uint64_t *secret) {
    uint64_t hash = fold(cell.length ^ secret[0] ^ word[0], secret[1] ^ word[1]);
    while (cell.length > 16) {
        cell.first += 16;
        cell.length -= 16;
        load_start(column, cell, word);
        hash = fold(hash ^ word[0], secret[1] ^ word[1]);
    }
    return fold(hash, secret[2]);
}
