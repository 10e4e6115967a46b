/* From ids to the chaining state of CMAC: what all blocks of a message but the last one leave behind.

   Included by narrow.h and wide.h, after GROUP and `encrypt_rows`: that encrypts whole groups, so every array of blocks
   has room for one more. */

/* So many objects at a time that all that is known of them stays in the fastest cache. */
enum { PIECE = 1024 };

/* The next up to 16 bytes at `from`, of which `left` (0 or more) belong to the object, and zeros behind them. There is no
   branch on `left`: nobody can foresee the lengths of ids. */
TARGET static inline __m128i bytes_at(const uint8_t *from, const uint8_t *end, int64_t left) {
    static const uint8_t ones[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    left = left > 16 ? 16 : left;
    if (__builtin_expect(end - from < 16, 0)) { /* the last bytes of all: reading 16 would read what is not ours */
        uint8_t copy[16] = {0};
        if (left) memcpy(copy, from, (size_t)left);
        return _mm_loadu_si128((const __m128i *)copy);
    }
    return _mm_and_si128(_mm_loadu_si128((const __m128i *)from), _mm_loadu_si128((const __m128i *)(ones + 16 - left)));
}

/* The first block of an object's id: tag, three zeros and length, then its first eight bytes. */
TARGET static inline __m128i first_id_block(const struct messages *of, uint64_t object) {
    int64_t begin = of->offsets[object], length = of->offsets[object + 1] - begin;
    __m128i payload = bytes_at(of->bytes + begin, of->bytes + of->size, length > 8 ? 8 : length);
    return _mm_or_si128(_mm_slli_si128(payload, 8), _mm_set_epi64x(0, (int64_t)(of->tag | (uint64_t)length << 32)));
}

/* Block `number` of an id that has so many: the bytes that follow. */
TARGET static inline __m128i next_id_block(const struct messages *of, uint64_t object, int64_t number) {
    int64_t from = of->offsets[object] + 16 * number - 8;
    return bytes_at(of->bytes + from, of->bytes + of->size, of->offsets[object + 1] - from);
}

static inline int64_t id_blocks(const struct messages *of, uint64_t object) {
    return (of->offsets[object + 1] - of->offsets[object] + 23) >> 4; /* there are no negative lengths */
}

/* Ids of different lengths: after the first block, all that have another one are encrypted together in each round, and
   those that have no more fall out. */
TARGET static void absorb_bytes(const struct key *key, const struct messages *messages, uint64_t first, size_t count,
                                block *state, block *room) {
    const struct messages copy = *messages, *of = &copy; /* no store below can change it: its fields stay in registers */
    uint16_t who[PIECE];
    size_t active = 0;
    for (size_t i = 0; i < count; i++) {
        store(state + i, first_id_block(of, first + i));
        who[active] = (uint16_t)i;
        active += id_blocks(of, first + i) > 1;
    }
    encrypt_rows(key, state, state, count);
    for (int64_t round = 1; active; round++) {
        for (size_t i = 0; i < active; i++)
            store(room + i, _mm_xor_si128(load(state + who[i]), next_id_block(of, first + who[i], round)));
        encrypt_rows(key, room, room, active);
        size_t stay = 0;
        for (size_t i = 0; i < active; i++) {
            uint16_t object = who[i];
            store(state + object, load(room + i));
            who[stay] = object;
            stay += id_blocks(of, first + object) > round + 1;
        }
        active = stay;
    }
}

TARGET static void absorb_integers(const struct key *key, const struct messages *of, uint64_t first, size_t count,
                                   block *state) {
    const uint64_t *integers = of->integers + first, large = of->is_unsigned;
    for (size_t i = 0; i < count; i++) {
        state[i].word[0] = (UINT64_C(8) << 32 | 1) + (large & integers[i] >> 63);
        state[i].word[1] = integers[i];
    }
    encrypt_rows(key, state, state, count);
}

/* What comes after the id, or instead of it. */
TARGET static void absorb_more(const struct key *key, const struct messages *of, uint64_t first, size_t count,
                               block *state) {
    for (uint64_t number = 0; number < of->more_blocks; number++) {
        const uint64_t *more = of->more + 2 * (number * of->count + first);
        for (size_t i = 0; i < count; i++) {
            state[i].word[0] ^= more[2 * i];
            state[i].word[1] ^= more[2 * i + 1];
        }
        encrypt_rows(key, state, state, count);
    }
}

/* The states of `count` objects (at most PIECE) from `first` on. `room` is for as many blocks. */
TARGET static void absorb(const struct key *key, const struct messages *of, uint64_t first, size_t count, block *state,
                          block *room) {
    if (of->integers)
        absorb_integers(key, of, first, count, state);
    else if (of->offsets)
        absorb_bytes(key, of, first, count, state, room);
    else
        memset(state, 0, count * sizeof *state);
    absorb_more(key, of, first, count, state);
}

/* 0, or 1 + the first row whose bytes would begin or end where there are none. */
static uint64_t impossible_row(const struct messages *of) {
    if (of->integers || !of->offsets) return 0;
    for (uint64_t i = 0; i < of->count; i++)
        if (of->offsets[i] < 0 || of->offsets[i] > of->offsets[i + 1] || (uint64_t)of->offsets[i + 1] > of->size)
            return i + 1;
    return 0;
}
