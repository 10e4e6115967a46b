/* Reports on the keyed path: the truths in `target` become reports.

   Included by narrow.h and wide.h, after each has said how it begins walks (`first_try`) and ends them (`walk_on`), and
   for how many objects it makes last blocks (`integer_rows`) and codes of one byte (`WRITE_BYTES`) in its own way. */

static inline void set_code(void *codes, int width, size_t i, uint64_t value) {
    switch (width) {
    case 1: ((uint8_t *)codes)[i] = (uint8_t)value; break;
    case 2: ((uint16_t *)codes)[i] = (uint16_t)value; break;
    case 4: ((uint32_t *)codes)[i] = (uint32_t)value; break;
    default: ((uint64_t *)codes)[i] = value;
    }
}

/* word mod values. The reciprocal is rounded down, so the quotient may be one too small, and never too large. */
static inline uint64_t value_of(uint64_t word, uint64_t values, uint64_t reciprocal) {
    word -= (uint64_t)((unsigned __int128)word * reciprocal >> 64) * values;
    return word >= values ? word - values : word;
}

/* Truths and value words become reports. */
__attribute__((always_inline)) TARGET static inline void write_reports(const struct walk *walk, size_t count,
                                                                       void *target, const int width) {
    uint64_t values = walk->level.values, mask = values - 1;
    if ((values & mask) == 0)
        for (size_t i = 0; i < count; i++) set_code(target, width, i, walk->report[i] & mask);
    else
        for (size_t i = width == 1 ? WRITE_BYTES(walk->report, count, values, target) : 0; i < count; i++)
            set_code(target, width, i, value_of(walk->report[i], values, walk->reciprocal));
}

/* Draw the reports of `count` rows in `walk->rows`, at most PIECE, over the truths that `target` holds. `width` is a
   constant where this is called, so that each width gets loops of its own. */
__attribute__((always_inline)) TARGET static inline void draw_codes(const struct key *key, struct walk *walk,
                                                                    size_t count, void *target, const int width) {
    int rejected = first_try(key, walk, count, target, width);
    walk_on(key, walk);
    for (size_t i = 0; rejected && i < count; i++)
        if (words_of(key, walk->rows + i, 0).word[1] > walk->last_value)
            walk_alone(key, walk, i, code(target, width, i));
    write_reports(walk, count, target, width);
}

TARGET static void draw_rows(const struct key *key, struct walk *walk, size_t count, void *target, uint64_t width) {
    switch (width) {
    case 1: draw_codes(key, walk, count, target, 1); break;
    case 2: draw_codes(key, walk, count, target, 2); break;
    case 4: draw_codes(key, walk, count, target, 4); break;
    default: draw_codes(key, walk, count, target, 8);
    }
}

/* The input of the last AES pass for symbol 0 and try 0: they are zeros, so only the truth's index goes in. */
TARGET static void last_blocks(const struct key *key, block *state, const uint64_t *index, size_t count) {
    for (size_t i = 0; i < count; i++) {
        state[i].word[0] ^= key->subkey.word[0] ^ index[i];
        state[i].word[1] ^= key->subkey.word[1];
    }
}

/* Append rows of one object, for symbols from `first` on. */
TARGET static void symbol_rows(block *rows, const block *last, uint64_t first, size_t count) {
    uint64_t word = last->word[0], other = last->word[1];
    for (size_t i = 0; i < count; i++) {
        rows[i].word[0] = word;
        rows[i].word[1] = other ^ (first + i);
    }
}

/* All symbols of `count` objects, whose last blocks are known, object by object. */
TARGET static void draw_symbols(const struct key *key, struct walk *walk, const block *last, size_t count,
                                uint64_t symbols, uint8_t *target, uint64_t width) {
    uint64_t rows = count * symbols, object = 0, symbol = 0;
    for (uint64_t done = 0; done < rows;) {
        size_t part = rows - done < PIECE ? rows - done : PIECE;
        for (size_t filled = 0; filled < part;) {
            size_t run = symbols - symbol < part - filled ? symbols - symbol : part - filled;
            symbol_rows(walk->rows + filled, last + object, symbol, run);
            filled += run;
            symbol += run;
            if (symbol == symbols) {
                symbol = 0;
                object++;
            }
        }
        draw_rows(key, walk, part, target + done * width, width);
        done += part;
    }
}

TARGET static uint64_t draw(const uint8_t *key_bytes, const struct level *level, const struct messages *messages,
                            const uint64_t *index, uint64_t symbols, struct codes target) {
    struct {
        struct key key;
        struct walk walk;
        block last[PIECE + GROUP];
    } secret;
    uint64_t wrong = impossible_row(messages);
    if (wrong) return wrong;
    make_key(&secret.key, key_bytes);
    begin_walks(&secret.walk, level);
    block *last = symbols == 1 ? secret.walk.rows : secret.last;
    for (uint64_t first = 0; first < messages->count; first += PIECE) {
        size_t count = messages->count - first < PIECE ? messages->count - first : PIECE;
        uint8_t *reports = (uint8_t *)target.first + first * symbols * target.width;
        size_t done = integer_rows(&secret.key, messages, first, index + first, last, count);
        absorb(&secret.key, messages, first + done, count - done, last + done, secret.walk.room);
        last_blocks(&secret.key, last + done, index + first + done, count - done);
        if (symbols == 1)
            draw_rows(&secret.key, &secret.walk, count, reports, target.width);
        else
            draw_symbols(&secret.key, &secret.walk, last, count, symbols, reports, target.width);
    }
    wipe(&secret, sizeof secret);
    return 0;
}
