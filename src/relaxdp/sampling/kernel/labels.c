/* Which of the declared values each cell of text is. */
#include "hash.h"

struct slot {
    struct start start;
    uint64_t length;
    uint64_t number; /* 1 + the place of a value; 0: the slot is empty */
};

static const uint64_t PUBLIC[2] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f}; /* as the values are */

/* Return the slot of a cell, or the empty one in which it would be. */
static inline struct slot *find_slot(struct slot *slots, uint64_t bits, const struct column *values,
                                     const struct column *column, struct cell cell) {
    struct start start = load_start(column, cell);
    uint64_t place = hash_cell(column, cell, start, PUBLIC) >> (64 - bits);
    for (;; place = (place + 1) & ((UINT64_C(1) << bits) - 1)) {
        struct slot *slot = slots + place;
        struct cell value;
        if (!slot->number) return slot;
        if ((slot->start.low ^ start.low) | (slot->start.high ^ start.high) | (slot->length ^ cell.length)) continue;
        if (cell.length <= 16) return slot;
        if (find_cell(values, slot->number - 1, &value) && !memcmp(value.first, cell.first, cell.length)) return slot;
    }
}

/* Write the place of each cell among the values. Return how many cells were found before the first one that is no value.
   `slots` are 2^bits slots of zeros, at least twice as many as there are values. */
DOOR uint64_t relaxdp_labels(const struct column *values, const struct column *cells, uint64_t bits, struct slot *slots,
                             uint64_t *places) {
    struct cell cell;
    for (uint64_t row = 0; row < values->count; row++) {
        if (!find_cell(values, row, &cell)) return 0;
        struct slot *slot = find_slot(slots, bits, values, values, cell);
        if (!slot->number) *slot = (struct slot){load_start(values, cell), cell.length, row + 1};
    }
    const struct column own = *cells; /* which no place that is written can change */
    for (uint64_t row = 0; row < own.count; row++) {
        if (!find_cell(&own, row, &cell)) return row;
        uint64_t number = find_slot(slots, bits, values, &own, cell)->number;
        if (!number) return row;
        places[row] = number - 1;
    }
    return own.count;
}
