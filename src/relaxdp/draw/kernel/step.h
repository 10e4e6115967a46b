/* One step of Algorithm 1, or a bridge, for codes of one byte: what `_FreshBridge` in bridge_arrays.py draws, from the same
   bytes of the same keystream in the same order.

   Included by aesni.c and vaes.c, after keystream.h. */

enum { AT_ONCE = 8192 }; /* bytes of the keystream; fewer than PIECE blocks wherever they begin */

enum { MARGIN = 32 };

/* 16 bytes that are 0 or 1, as bits. */
static inline uint32_t bits_of(const uint8_t *ones) {
    return (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(_mm_loadu_si128((const __m128i *)ones), 7));
}

/* Write the places of the bytes that are 1, counted from `offset` on; returns how many. MARGIN bytes behind the last one are written to, and two
   places. */
TARGET static uint64_t places_of(uint8_t *ones, size_t count, uint32_t offset, uint32_t *places) {
    uint64_t found = 0;
    memset(ones + count, 0, MARGIN);
    for (size_t i = 0; i < count; i += MARGIN) {
        uint32_t set = bits_of(ones + i) | bits_of(ones + i + 16) << 16;
        /* Two are written whether they are there or not: a branch on so few bits would often be foreseen wrongly. */
        uint32_t first = offset + (uint32_t)i, count_set = (uint32_t)__builtin_popcount(set), without = set & (set - 1);
        places[found] = first + (uint32_t)__builtin_ctz(set | UINT32_C(1) << 31);
        places[found + 1] = first + (uint32_t)__builtin_ctz(without | UINT32_C(1) << 31);
        for (uint32_t more = 2; more < count_set; more++) {
            without &= without - 1;
            places[found + more] = first + (uint32_t)__builtin_ctz(without);
        }
        found += count_set;
    }
    return found;
}

/* Passes over bytes. Their arrays do not overlap (`restrict`), so compilers take many at a time. */

/* flags[i] = whether the byte lies below the chance of its kind, ties[i] = whether they are equal. */
TARGET static void compare_bytes(const uint8_t *restrict random, const uint8_t *restrict lower,
                                 const uint8_t *restrict upper, size_t count, const struct chance *chance,
                                 uint8_t *restrict flags, uint8_t *restrict ties) {
    uint8_t agree = chance->tops[0], differ = chance->tops[1];
    for (size_t i = 0; i < count; i++) {
        uint8_t top = lower[i] == upper[i] ? agree : differ;
        flags[i] = random[i] < top;
        ties[i] = random[i] == top;
    }
}

TARGET static void flip(const uint8_t *restrict flags, const uint8_t *restrict upper, uint8_t *restrict result,
                        size_t count) {
    for (size_t i = 0; i < count; i++) result[i] = upper[i] ^ flags[i];
}

/* The drawn value where `redraw` is set, else the upper code where `flags` is set, else the lower one. */
TARGET static void select_codes(const uint8_t *restrict flags, const uint8_t *restrict redraw,
                                const uint8_t *restrict values, const uint8_t *restrict lower,
                                const uint8_t *restrict upper, uint8_t *restrict result, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint8_t to_upper = (uint8_t)(0 - flags[i]), any = (uint8_t)(0 - redraw[i]);
        uint8_t end = (uint8_t)((upper[i] & to_upper) | (lower[i] & ~to_upper));
        result[i] = (uint8_t)((values[i] & any) | (end & ~any));
    }
}

/* byte mod values. byte * reciprocal / 2^16 is the quotient: what the reciprocal, rounded up, is too large by does not
   reach the next whole number, because 255 * 255 < 2^16. */
TARGET static void take_remainders(uint8_t *bytes, uint16_t values, size_t count) {
    uint16_t reciprocal = (uint16_t)((65536 + values - 1) / values);
    for (size_t i = 0; i < count; i++) {
        uint16_t quotient = (uint16_t)((uint32_t)bytes[i] * reciprocal >> 16);
        bytes[i] = (uint8_t)(bytes[i] - quotient * values);
    }
}

/* Draw flags with the chance of each object's kind. Returns 0 where a word ties as well: then more digits are needed than
   there are here. */
TARGET static int draw_flags(struct stream *stream, const struct chance *chance, const uint8_t *lower,
                             const uint8_t *upper, size_t count, uint8_t *flags, uint32_t *ties) {
    uint64_t found = 0;
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t part = count - done < AT_ONCE ? count - done : AT_ONCE;
        uint8_t equal[AT_ONCE + MARGIN];
        compare_bytes(next_bytes(stream, part), lower + done, upper + done, part, chance, flags + done, equal);
        found += places_of(equal, part, (uint32_t)done, ties + found);
    }
    for (uint64_t done = 0; done < found;) {
        uint64_t part = found - done < AT_ONCE / 8 ? found - done : AT_ONCE / 8;
        const uint8_t *words = chance->is_decided ? NULL : next_bytes(stream, 8 * part);
        for (uint64_t i = 0; i < part; i++) {
            uint32_t place = ties[done + i];
            int kind = lower[place] != upper[place];
            uint64_t word = 0;
            if (words) memcpy(&word, words + 8 * i, 8);
            if (words && word == chance->digits[kind]) return 0;
            flags[place] = words ? word < chance->digits[kind] : chance->decided[kind];
        }
        done += part;
    }
    return 1;
}

/* Uniform bytes below `values`: those of the last, incomplete run are drawn again, all of them together, until none is. */
TARGET static void draw_values(struct stream *stream, uint32_t values, size_t count, uint8_t *drawn, uint32_t *again) {
    uint32_t limit = 256 - 256 % values;
    size_t rejected = 0;
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t part = count - done < AT_ONCE ? count - done : AT_ONCE;
        uint8_t over[AT_ONCE + MARGIN];
        memcpy(drawn + done, next_bytes(stream, part), part);
        for (size_t i = 0; i < part; i++) over[i] = drawn[done + i] > limit - 1;
        rejected += places_of(over, part, (uint32_t)done, again + rejected);
    }
    while (rejected) {
        size_t still = 0;
        for (size_t done = 0; done < rejected; done += AT_ONCE) {
            size_t part = rejected - done < AT_ONCE ? rejected - done : AT_ONCE;
            const uint8_t *random = next_bytes(stream, part);
            for (size_t i = 0; i < part; i++) {
                uint32_t place = again[done + i];
                drawn[place] = random[i];
                again[still] = place;
                still += random[i] >= limit;
            }
        }
        rejected = still;
    }
    take_remainders(drawn, (uint16_t)values, count);
}

/* `room` is for 3 * count bytes and `ties` for count + 2 numbers. Returns where the keystream goes on, or 0 where nothing was
   decided: then NumPy draws these objects, from the same place on. */
TARGET static uint64_t step(const uint8_t *seed, uint64_t position, const struct step *law, const uint8_t *lower,
                            const uint8_t *upper, uint8_t *result, uint64_t count, uint8_t *room, uint32_t *ties) {
    struct stream stream;
    uint8_t *first = room, *second = room + count, *values = second + count;
    begin_stream(&stream, seed, position);
    int decided = draw_flags(&stream, &law->first, lower, upper, count, first, ties);
    if (law->values == 2) {
        if (decided) flip(first, upper, result, count);
    } else if (decided && draw_flags(&stream, &law->redraw, lower, upper, count, second, ties)) {
        draw_values(&stream, (uint32_t)law->values, count, values, ties);
        select_codes(first, second, values, lower, upper, result, count);
    } else {
        decided = 0;
    }
    position = stream.position;
    wipe(&stream, sizeof stream);
    return decided ? position : 0;
}
