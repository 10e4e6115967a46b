/* Whether all ids of a column are distinct. Hashes go into pieces by their highest bits, and each piece into a table that
   stays in the cache. */
#include "hash.h"

enum { SLOT_BITS = 14, SLOTS = 1 << SLOT_BITS }; /* of a table: several times as many as a piece has hashes */

/* 2^bits pieces with room for `capacity` hashes each. */
struct pieces {
    uint64_t bits, capacity;
    uint64_t *hashes, *fills;
};

/* Return 0 where the piece is full: that many hashes are alike only if ids are. */
static inline int add_hash(const struct pieces *pieces, uint64_t hash) {
    uint64_t piece = hash >> 1 >> (63 - pieces->bits), place = pieces->fills[piece];
    if (place == pieces->capacity) return 0;
    pieces->hashes[piece * pieces->capacity + place] = hash;
    pieces->fills[piece] = place + 1;
    return 1;
}

/* Different numbers have different hashes: each step can be undone. */
static inline uint64_t hash_integer(uint64_t number, const uint64_t *secret) {
    number = (number ^ secret[0]) * (secret[1] | 1);
    return (number ^ number >> 32) * (secret[2] | 1);
}

static int add_hashes(const struct pieces *pieces, const struct column *ids, const uint64_t *secret) {
    if (ids->integers) {
        for (uint64_t row = 0; row < ids->count; row++)
            if (!add_hash(pieces, hash_integer(ids->integers[row], secret))) return 0;
        return 1;
    }
    for (uint64_t row = 0; row < ids->count; row++) {
        struct cell cell;
        if (!find_cell(ids, row, &cell)) return 0;
        if (!add_hash(pieces, hash_cell(ids, cell, load_start(ids, cell), secret))) return 0;
    }
    return 1;
}

/* A slot of 0 is empty, so the hash 0 counts as 1. */
static int has_repeat(const uint64_t *hashes, uint64_t count, uint64_t bits, uint64_t *table) {
    memset(table, 0, SLOTS * sizeof *table);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t hash = hashes[i] + !hashes[i], slot = hash << bits >> (64 - SLOT_BITS);
        while (table[slot] && table[slot] != hash) slot = (slot + 1) % SLOTS;
        if (table[slot]) return 1;
        table[slot] = hash;
    }
    return 0;
}

/* Return 1 only if all ids are distinct; 0 where two hashes are equal, or where a piece is full. `fills` are zeros, one
   for each piece, and `table` has room for SLOTS words. `capacity` must be less than SLOTS. */
DOOR int relaxdp_distinct(const struct column *ids, const uint64_t *secret, uint64_t bits, uint64_t capacity,
                          uint64_t *hashes, uint64_t *fills, uint64_t *table) {
    struct pieces pieces = {bits, capacity, hashes, fills};
    if (!add_hashes(&pieces, ids, secret)) return 0;
    for (uint64_t piece = 0; piece >> bits == 0; piece++)
        if (has_repeat(hashes + piece * capacity, fills[piece], bits, table)) return 0;
    return 1;
}
