/* One step of Algorithm 1, or a bridge, for codes of one byte: what `_FreshBridgeSampler` of
   bridge.py draws, from the same bytes of the same keystream in the same order.

   Included by narrow.h and wide.h, after keystream.h and after each has said how it makes bits of bytes (`bits_of`). */

/* Bytes of the keystream. So few that the codes of the next ones arrive from memory while these are made. */
enum { AT_ONCE = 1024 };

/* What a flag does: flip the upper code (two values), choose the upper code and not the lower one, or nothing yet. */
enum use { FLIP, CHOOSE, KEEP };

/* The objects of one chunk: all their flags are drawn before the first tie is resolved. */
struct chunk {
    const uint8_t *lower, *upper;
    uint8_t *result, *redraw; /* redraw: 255 for those who get any value, 0 for others */
    size_t count;
    uint32_t *places; /* of ties, or of what must be drawn again; room for two more */
};

/* Append the places of all bits that are set, counted from `first` on; returns how many there are then. */
TARGET static inline size_t append_places(uint32_t *places, size_t found, uint32_t first, uint64_t set) {
    /* Two are written whether they are there or not: a branch on so few bits would often be foreseen wrongly. */
    size_t all = found + (size_t)__builtin_popcountll(set);
    uint64_t without = set & (set - 1), last = UINT64_C(1) << 63;
    places[found] = first + (uint32_t)__builtin_ctzll(set | last);
    places[found + 1] = first + (uint32_t)__builtin_ctzll(without | last);
    for (size_t more = found + 2; more < all; more++) {
        without &= without - 1;
        places[more] = first + (uint32_t)__builtin_ctzll(without);
    }
    return all;
}

TARGET static size_t places_of(const uint32_t *bits, size_t count, uint32_t first, uint32_t *places, size_t found) {
    for (size_t i = 0; i < (count + WIDTH - 1) / WIDTH; i += 2)
        found = append_places(places, found, first + (uint32_t)(i * WIDTH), bits[i] | (uint64_t)bits[i + 1] << WIDTH);
    return found;
}

/* Flags of WIDTH objects, and what they do. Returns who ties: bits. */
__attribute__((always_inline)) TARGET static inline uint32_t take_flags(
    const enum use use, const uint8_t tops[2], const uint8_t *random, const uint8_t *lower, const uint8_t *upper,
    uint8_t *to, lanes *largest) {
    lanes drawn, low, high, agree = (lanes){0} + tops[0], differ = (lanes){0} + tops[1];
    memcpy(&drawn, random, WIDTH);
    memcpy(&low, lower, WIDTH);
    memcpy(&high, upper, WIDTH);
    lanes top = differ ^ ((agree ^ differ) & (lanes)(low == high));
    lanes not_set = (lanes)(drawn >= top), ties = (lanes)(drawn == top);
    lanes made = use == FLIP ? high ^ (~not_set & 1) : use == CHOOSE ? high ^ ((low ^ high) & not_set) : ~not_set;
    memcpy(to, &made, WIDTH);
    if (use != KEEP) {
        raise_to(largest, &low);
        raise_to(largest, &high);
    }
    return bits_of(&ties);
}

/* Draw a flag with the chance of its kind for every object of a chunk. Returns 0 where a word ties as well: then more
   digits are needed than there are here. `use` is a constant where this is called: each use gets a loop of its own. */
__attribute__((always_inline)) TARGET static inline int draw_flags(struct stream *stream, const struct chunk *of,
                                                                   const struct chance *chance, const enum use use,
                                                                   lanes *largest_code) {
    uint8_t *target = use == KEEP ? of->redraw : of->result, tops[2] = {chance->tops[0], chance->tops[1]};
    lanes largest = *largest_code;
    size_t found = 0;
    for (size_t done = 0; done < of->count; done += AT_ONCE) {
        size_t part = of->count - done < AT_ONCE ? of->count - done : AT_ONCE;
        size_t whole = part / WIDTH, left = part % WIDTH;
        const uint8_t *random = next_bytes(stream, part), *lower = of->lower + done, *upper = of->upper + done;
        uint8_t *to = target + done;
        uint32_t ties[AT_ONCE / WIDTH + 1];
#pragma GCC unroll 2
        for (size_t i = 0; i < whole; i++)
            ties[i] = take_flags(use, tops, random + WIDTH * i, lower + WIDTH * i, upper + WIDTH * i, to + WIDTH * i,
                                 &largest);
        ties[whole] = 0;
        if (left) {
            uint8_t last_lower[WIDTH] = {0}, last_upper[WIDTH] = {0}, made[WIDTH];
            size_t at = WIDTH * whole;
            memcpy(last_lower, lower + at, left);
            memcpy(last_upper, upper + at, left);
            ties[whole] = take_flags(use, tops, random + at, last_lower, last_upper, made, &largest);
            ties[whole] &= (UINT32_C(1) << left) - 1;
            ties[whole + 1] = 0;
            memcpy(to + at, made, left);
        }
        found = places_of(ties, part, (uint32_t)done, of->places, found);
    }
    *largest_code = largest;
    for (size_t done = 0; done < found;) {
        size_t part = found - done < AT_ONCE / 8 ? found - done : AT_ONCE / 8;
        const uint8_t *words = chance->is_decided ? NULL : next_bytes(stream, 8 * part);
        for (size_t i = 0; i < part; i++) {
            uint32_t place = of->places[done + i];
            uint8_t low = of->lower[place], high = of->upper[place];
            int kind = low != high, flag = chance->decided[kind];
            if (words) {
                uint64_t word;
                memcpy(&word, words + 8 * i, 8);
                if (word == chance->digits[kind]) return 0;
                flag = word < chance->digits[kind];
            }
            target[place] = use == FLIP ? high ^ flag : use == CHOOSE ? (flag ? high : low) : 0 - flag;
        }
        done += part;
    }
    return 1;
}

/* What divides bytes by `values`: byte * reciprocal / 2^shift. The reciprocal has eight bits, the highest of them set,
   and is rounded down: the quotient is at most one too small, because 255 < 2^shift. */
struct divisor {
    uint16_t values, reciprocal;
    int shift;
};

static struct divisor divisor_of(uint32_t values) {
    int shift = 7;
    while (UINT32_C(1) << (shift - 7) < values) shift++;
    return (struct divisor){(uint16_t)values, (uint16_t)((UINT32_C(1) << shift) / values), shift};
}

/* byte mod values, for WIDTH bytes: two in each lane of 16 bits, one after the other. */
__attribute__((always_inline)) TARGET static inline void take_remainders(lanes *bytes, const struct divisor *by) {
    pairs both = (pairs)*bytes, even = both & 255, odd = both >> 8;
    even -= (even * by->reciprocal >> by->shift) * by->values;
    odd -= (odd * by->reciprocal >> by->shift) * by->values;
    lanes rest = (lanes)(even | odd << 8), last = (lanes){0} + (uint8_t)(by->values - 1);
    *bytes = rest - ((lanes)(rest > last) & (uint8_t)by->values);
}

/* Uniform bytes below `values` for WIDTH objects, taken by those who get any value. Returns whose bytes lie in the
   last, incomplete run: bits. They are drawn again. */
__attribute__((always_inline)) TARGET static inline uint32_t take_values(const struct divisor *by,
                                                                         const uint8_t *random, const uint8_t *redraw,
                                                                         uint8_t *result) {
    lanes drawn, taken, given, last = (lanes){0} + (uint8_t)(255 - 256 % by->values);
    memcpy(&drawn, random, WIDTH);
    memcpy(&taken, redraw, WIDTH);
    memcpy(&given, result, WIDTH);
    lanes over = (lanes)(drawn > last);
    take_remainders(&drawn, by);
    given ^= (given ^ drawn) & taken;
    memcpy(result, &given, WIDTH);
    return bits_of(&over);
}

/* Draw a value for every object of a chunk, whoever takes it; what is rejected is drawn again, all of it together,
   until nothing is. */
TARGET static void draw_values(struct stream *stream, const struct chunk *of, uint32_t values) {
    const struct divisor by = divisor_of(values);
    size_t rejected = 0;
    for (size_t done = 0; done < of->count; done += AT_ONCE) {
        size_t part = of->count - done < AT_ONCE ? of->count - done : AT_ONCE;
        size_t whole = part / WIDTH, left = part % WIDTH;
        const uint8_t *random = next_bytes(stream, part), *redraw = of->redraw + done;
        uint8_t *result = of->result + done;
        uint32_t over[AT_ONCE / WIDTH + 1];
        for (size_t i = 0; i < whole; i++)
            over[i] = take_values(&by, random + WIDTH * i, redraw + WIDTH * i, result + WIDTH * i);
        over[whole] = 0;
        if (left) {
            uint8_t last_redraw[WIDTH] = {0}, last_result[WIDTH] = {0};
            size_t at = WIDTH * whole;
            memcpy(last_redraw, redraw + at, left);
            memcpy(last_result, result + at, left);
            over[whole] = take_values(&by, random + at, last_redraw, last_result) & ((UINT32_C(1) << left) - 1);
            over[whole + 1] = 0;
            memcpy(result + at, last_result, left);
        }
        rejected = places_of(over, part, (uint32_t)done, of->places, rejected);
    }
    uint32_t limit = 256 - 256 % values;
    while (rejected) {
        size_t still = 0;
        for (size_t done = 0; done < rejected; done += AT_ONCE) {
            size_t part = rejected - done < AT_ONCE ? rejected - done : AT_ONCE;
            const uint8_t *random = next_bytes(stream, part);
            for (size_t i = 0; i < part; i++) {
                uint32_t place = of->places[done + i], taken = of->redraw[place], before = of->result[place];
                of->result[place] = (uint8_t)(before ^ ((before ^ random[i] % values) & taken)); /* no branch here */
                of->places[still] = place;
                still += random[i] >= limit;
            }
        }
        rejected = still;
    }
}

/* One chunk. Returns 0 where more digits are needed than there are here. */
TARGET static int step_chunk(struct stream *stream, const struct step *law, const struct chunk *chunk,
                             uint64_t *largest) {
    lanes its_largest = {0};
    int decided = law->values == 2 ? draw_flags(stream, chunk, &law->first, FLIP, &its_largest)
                                   : draw_flags(stream, chunk, &law->first, CHOOSE, &its_largest) &&
                                         draw_flags(stream, chunk, &law->redraw, KEEP, &its_largest);
    if (decided && law->values > 2) draw_values(stream, chunk, (uint32_t)law->values);
    for (int i = 0; i < WIDTH; i++) *largest = its_largest[i] > *largest ? its_largest[i] : *largest;
    return decided;
}

/* Draw one chunk after the other, of `most` objects. `room` is for as many bytes, `places` for two numbers more. Returns
   how many objects are drawn: all, or those of the chunks before one that needs more digits than there are here. */
TARGET static uint64_t step(const uint8_t *seed, const struct step *law, const struct columns *columns, uint64_t most,
                            uint8_t *room, uint32_t *places, struct reached *reached) {
    struct stream stream;
    uint64_t done = 0, count = columns->count;
    begin_stream(&stream, seed, reached->position);
    for (; done < count; done += most) {
        size_t part = count - done < most ? count - done : most;
        struct chunk chunk = {columns->lower + done, columns->upper + done, columns->result + done, room, part, places};
        if (!step_chunk(&stream, law, &chunk, &reached->largest)) break;
        reached->position = stream.position;
    }
    uint64_t used = count < most ? count : most;
    wipe(&stream, sizeof stream);
    wipe(room, used);
    wipe(places, (used + 2) * sizeof *places); /* of who was drawn anew */
    return done < count ? done : count;
}
