/* Whether all ids of a column are distinct. Hashes go into pieces by their highest bits, and each piece into a table that
   stays in the cache. */
#include "hash.h"

enum { SLOT_BITS = 14, SLOTS = 1 << SLOT_BITS }; /* of the table: several times as many as a piece has hashes */

/* Different numbers have different hashes: each step can be undone. */
static inline uint64_t hash_integer(uint64_t number, const uint64_t *secret) {
    number = (number ^ secret[0]) * (secret[1] | 1);
    return (number ^ number >> 32) * (secret[2] | 1);
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

/* Return 1 only if all ids are distinct; 0 where two hashes are equal, or more alike than a piece has room for. `hashes`
   are 2^bits pieces of `capacity` words, less than SLOTS; `fills` are as many zeros; `table` is SLOTS words. */
DOOR int relaxdp_distinct(const struct column *ids, const uint64_t *secret, uint64_t bits, uint64_t capacity,
                          uint64_t *hashes, uint64_t *fills, uint64_t *table) {
    const struct column own = *ids; /* which no hash that is written can change */
    for (uint64_t row = 0; row < own.count; row++) {
        struct cell cell;
        if (!own.integers && !find_cell(&own, row, &cell)) return 0;
        uint64_t hash = own.integers ? hash_integer(own.integers[row], secret)
                                     : hash_cell(&own, cell, load_start(&own, cell), secret);
        uint64_t piece = hash >> 1 >> (63 - bits), place = fills[piece];
        if (place == capacity) return 0;
        hashes[piece * capacity + place] = hash;
        fills[piece] = place + 1;
    }
    for (uint64_t piece = 0; piece >> bits == 0; piece++)
        if (has_repeat(hashes + piece * capacity, fills[piece], bits, table)) return 0;
    return 1;
}
