/* Which of the declared values each cell of text is. */
#include "hash.h"

struct slot {
    uint64_t word[2], length; /* the start of a value, and how long it is */
    uint64_t number;          /* 1 + its place among the values; 0: the slot is empty */
};

static const uint64_t SECRET[3] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0xd6e8feb86659fd93}; /* values are public */

/* Return the slot of a cell, or the empty one in which it would be. */
static inline struct slot *find_slot(struct slot *slots, uint64_t bits, const struct column *values,
                                     const struct column *column, struct cell cell, uint64_t start[2]) {
    uint64_t word[2] = {start[0], start[1]};
    uint64_t place = hash_cell(column, cell, word, SECRET) >> (64 - bits);
    for (;; place = (place + 1) & ((UINT64_C(1) << bits) - 1)) {
        struct slot *slot = slots + place;
        struct cell value;
        if (!slot->number) return slot;
        if (((slot->word[0] ^ start[0]) | (slot->word[1] ^ start[1]) | (slot->length ^ cell.length))) continue;
        if (cell.length <= 16) return slot;
        if (find_cell(values, slot->number - 1, &value) && !memcmp(value.first, cell.first, cell.length)) return slot;
    }
}

/* Write the place of each cell among the values. Return how many cells were found before the first one that is no value.
   `slots` are 2^bits slots of zeros, at least twice as many as there are values. */
DOOR uint64_t relaxdp_labels(const struct column *values, const struct column *cells, uint64_t bits, struct slot *slots,
                             uint64_t *places) {
    struct cell cell;
    uint64_t word[2];
    for (uint64_t row = 0; row < values->count; row++) {
        if (!find_cell(values, row, &cell)) return 0;
        load_start(values, cell, word);
        struct slot *slot = find_slot(slots, bits, values, values, cell, word);
        if (!slot->number) *slot = (struct slot){{word[0], word[1]}, cell.length, row + 1};
    }
    for (uint64_t row = 0; row < cells->count; row++) {
        if (!find_cell(cells, row, &cell)) return row;
        load_start(cells, cell, word);
        uint64_t number = find_slot(slots, bits, values, cells, cell, word)->number;
        if (!number) return row;
        places[row] = number - 1;
    }
    return cells->count;
}
