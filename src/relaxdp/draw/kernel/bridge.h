/* Keyed bridges: a report between two others, from one position and one value word of each symbol.

   Included by narrow.h and vaes.c, after path.h. */

struct bridging {
    struct walk walk; /* its rows, room and reports: nobody walks here */
    _Alignas(32) block state[PIECE + GROUP];  /* what the ids of some objects left behind */
    _Alignas(64) block paired[PIECE + GROUP]; /* bits: the states after all four pairs of ends, object by object */
    /* The codes of both ends as words, so that only what reads and writes them knows how wide they are. */
    _Alignas(32) uint64_t lower[PIECE + GROUP], upper[PIECE + GROUP];
};

__attribute__((always_inline)) TARGET static inline void widen(uint64_t *words, const void *codes, size_t count,
                                                               const int width) {
    for (size_t i = 0; i < count; i++) words[i] = code(codes, width, i);
}

TARGET static void read_codes(uint64_t *words, const void *codes, size_t count, uint64_t width) {
    switch (width) {
    case 1: widen(words, codes, count, 1); break;
    case 2: widen(words, codes, count, 2); break;
    case 4: widen(words, codes, count, 4); break;
    default: widen(words, codes, count, 8);
    }
}

TARGET static void write_codes(const struct walk *walk, size_t count, void *codes, uint64_t width) {
    switch (width) {
    case 1: write_reports(walk, count, codes, 1); break;
    case 2: write_reports(walk, count, codes, 2); break;
    case 4: write_reports(walk, count, codes, 4); break;
    default: write_reports(walk, count, codes, 8);
    }
}

/* Which report each row gets: from the first cut on the lower one, from the second on any value. Returns whether a word
   cannot tell: one that equals a cut, which may have more digits, and a value word that is rejected. Masks, because
   nobody can foresee these words, and because a branch would show them. */
TARGET static int choose(const struct bridge *law, struct bridging *of, size_t count) {
    uint64_t unsettled = 0, last_value = of->walk.last_value;
    uint64_t lower_agree = law->to_lower[0], lower_change = law->to_lower[0] ^ law->to_lower[1];
    uint64_t redraw_agree = law->redraw[0], redraw_change = law->redraw[0] ^ law->redraw[1];
    for (size_t i = 0; i < count; i++) {
        uint64_t position = of->walk.room[i].word[0], value = of->walk.room[i].word[1];
        uint64_t low = of->lower[i], high = of->upper[i], differ = 0 - (uint64_t)(low != high);
        uint64_t to_lower = lower_agree ^ (lower_change & differ), redraw = redraw_agree ^ (redraw_change & differ);
        uint64_t report = high ^ ((high ^ low) & (0 - (uint64_t)(position >= to_lower)));
        of->walk.report[i] = report ^ ((report ^ value) & (0 - (uint64_t)(position >= redraw)));
        unsettled |= (position == to_lower) | (position == redraw) | (value > last_value);
    }
    return unsettled != 0;
}

/* Where a row is: which object, counted from the first of a piece, and which of its symbols. */
struct place {
    uint64_t object, symbol;
};

static inline struct place next_place(struct place place, uint64_t symbols) {
    uint64_t last = place.symbol + 1 == symbols;
    return (struct place){place.object + last, last ? 0 : place.symbol + 1};
}

/* The last blocks of `count` rows from a place on: state and ends are encrypted, then come subkey and symbol. */
__attribute__((always_inline)) TARGET static inline void rows_of_ends(const struct key *key, struct bridging *of,
                                                                      struct place place, uint64_t symbols,
                                                                      uint64_t first_symbol, size_t count) {
    block *rows = of->walk.rows;
    struct place at = place;
    for (size_t i = 0; i < count; i++, at = next_place(at, symbols)) {
        rows[i].word[0] = of->state[at.object].word[0] ^ of->upper[i];
        rows[i].word[1] = of->state[at.object].word[1] ^ of->lower[i];
    }
    encrypt_rows(key, rows, rows, count);
    for (size_t i = 0; i < count; i++, place = next_place(place, symbols)) {
        rows[i].word[0] ^= key->subkey.word[0];
        rows[i].word[1] ^= key->subkey.word[1] ^ (first_symbol + place.symbol);
    }
}

/* A bit has four pairs of ends, so all bits of an object share four chaining states, which this makes of `count`
   objects. They lie in one line of the cache: which of them a bit takes does not show there. */
TARGET static void pair_ends(const struct key *key, struct bridging *of, size_t count) {
    for (size_t i = 0; i < 4 * count; i++) {
        of->paired[i].word[0] = of->state[i / 4].word[0] ^ (i % 4 / 2);
        of->paired[i].word[1] = of->state[i / 4].word[1] ^ (i % 2);
    }
    encrypt_rows(key, of->paired, of->paired, 4 * count);
    for (size_t i = 0; i < 4 * count; i++) store(of->paired + i, _mm_xor_si128(load(of->paired + i), load(&key->subkey)));
}

/* The same for bits, object by object. */
TARGET static void rows_of_bits(struct bridging *of, struct place at, uint64_t symbols, uint64_t first_symbol,
                                size_t count) {
    for (size_t i = 0; i < count; at = (struct place){at.object + 1, 0}) {
        const block *its = of->paired + 4 * at.object;
        size_t end = symbols - at.symbol < count - i ? i + symbols - at.symbol : count;
        __m128i symbol = _mm_set_epi64x((int64_t)(first_symbol + at.symbol), 0), next = _mm_set_epi64x(1, 0);
        for (; i < end; i++, symbol = _mm_add_epi64(symbol, next)) {
            uint64_t which = 2 * (of->upper[i] & 1) + (of->lower[i] & 1);
            store(of->walk.rows + i, _mm_xor_si128(load(its + which), symbol));
        }
    }
}

/* Draw a report for every symbol of every object, row by row. Returns 0, or 1 + a row that is impossible, or UNSETTLED
   where a word cannot tell: then nothing that was written counts. */
TARGET static uint64_t bridge(const uint8_t *key_bytes, const struct bridge *law, const struct messages *messages,
                              uint64_t first_symbol, uint64_t symbols, const struct columns *columns) {
    struct {
        struct key key;
        struct bridging bridging;
    } secret;
    struct bridging *of = &secret.bridging;
    uint64_t wrong = impossible_row(messages), width = columns->width, done = 0, unsettled = 0;
    if (wrong) return wrong;
    make_key(&secret.key, key_bytes);
    begin_walks(&of->walk, &(struct level){1, law->values});
    int are_bits = law->values == 2 && symbols > 1;
    size_t most = are_bits ? PIECE / 4 : PIECE;
    for (uint64_t first = 0; first < messages->count; first += most) {
        size_t objects = messages->count - first < most ? messages->count - first : most;
        struct place place = {0, 0};
        absorb(&secret.key, messages, first, objects, of->state, of->walk.room);
        if (are_bits) pair_ends(&secret.key, of, objects);
        for (uint64_t end = done + objects * symbols; done < end;) {
            size_t count = end - done < PIECE ? end - done : PIECE, at = done * width;
            read_codes(of->lower, (const uint8_t *)columns->lower + at, count, width);
            read_codes(of->upper, (const uint8_t *)columns->upper + at, count, width);
            if (are_bits)
                rows_of_bits(of, place, symbols, first_symbol, count);
            else if (symbols == 1) /* a constant, for a simpler loop */
                rows_of_ends(&secret.key, of, (struct place){place.object, 0}, 1, first_symbol, count);
            else
                rows_of_ends(&secret.key, of, place, symbols, first_symbol, count);
            encrypt_rows(&secret.key, of->walk.rows, of->walk.room, count);
            unsettled |= (uint64_t)choose(law, of, count);
            write_codes(&of->walk, count, (uint8_t *)columns->result + at, width);
            done += count;
            place.object += (place.symbol + count) / symbols;
            place.symbol = (place.symbol + count) % symbols;
        }
    }
    wipe(&secret, sizeof secret);
    return unsettled ? UNSETTLED : 0;
}
