/* Steps of codes of 2, 4 or 8 bytes. Their flags are drawn as those of bytes are, whose lower code is 0 and whose upper
   one tells whether the ends differ. A value is a word of the keystream, and only who redraws takes one.

   Included by narrow.h and vaes.c, after step.h and path.h. */

/* Note which ends differ; returns the largest code. `width` is a constant where this is called, here and below. */
__attribute__((always_inline)) TARGET static inline uint64_t compare_ends(const struct columns *of, uint8_t *differ,
                                                                          const int width) {
    uint64_t largest = 0;
    for (size_t i = 0; i < of->count; i++) {
        uint64_t low = code(of->lower, width, i), high = code(of->upper, width, i), larger = low > high ? low : high;
        differ[i] = low != high;
        largest = larger > largest ? larger : largest;
    }
    return largest;
}

__attribute__((always_inline)) TARGET static inline void choose_ends(const struct columns *of, const uint8_t *flags,
                                                                     const int width) {
    for (size_t i = 0; i < of->count; i++) {
        uint64_t low = code(of->lower, width, i), high = code(of->upper, width, i);
        set_code(of->result, width, i, low ^ ((low ^ high) & (0 - (uint64_t)(flags[i] & 1))));
    }
}

/* Uniform values for some places; words of the last, incomplete run are drawn again, all of them together. */
__attribute__((always_inline)) TARGET static inline void draw_words(struct stream *stream, uint64_t values,
                                                                    void *result, uint32_t *places, size_t count,
                                                                    const int width) {
    uint64_t last = ~((0 - values) % values), reciprocal = ~UINT64_C(0) / values;
    while (count) {
        size_t still = 0;
        for (size_t done = 0; done < count; done += AT_ONCE / 8) {
            size_t part = count - done < AT_ONCE / 8 ? count - done : AT_ONCE / 8;
            const uint8_t *words = next_bytes(stream, 8 * part);
            for (size_t i = 0; i < part; i++) {
                uint64_t word;
                uint32_t place = places[done + i];
                memcpy(&word, words + 8 * i, 8);
                set_code(result, width, place, value_of(word, values, reciprocal));
                places[still] = place;
                still += word > last;
            }
        }
        count = still;
    }
}

/* One chunk. `room` is for four times as many bytes. Returns 0 where more digits are needed than there are here. */
__attribute__((always_inline)) TARGET static inline int step_codes(struct stream *stream, const struct step *law,
                                                                   const struct columns *of, uint8_t *room,
                                                                   uint32_t *places, uint64_t *largest,
                                                                   const int width) {
    size_t count = of->count, redrawn = 0;
    uint8_t *zeros = room, *differ = zeros + count, *flags = differ + count, *redraw = flags + count;
    struct chunk first = {zeros, differ, NULL, flags, count, places}, second = first;
    second.redraw = redraw;
    lanes not_needed = {0};
    memset(zeros, 0, count);
    uint64_t its_largest = compare_ends(of, differ, width);
    *largest = its_largest > *largest ? its_largest : *largest;
    if (!draw_flags(stream, &first, &law->first, KEEP, &not_needed)) return 0;
    if (!draw_flags(stream, &second, &law->redraw, KEEP, &not_needed)) return 0;
    choose_ends(of, flags, width);
    for (size_t i = 0; i < count; i++) {
        places[redrawn] = (uint32_t)i;
        redrawn += redraw[i] & 1;
    }
    draw_words(stream, law->values, of->result, places, redrawn, width);
    return 1;
}

TARGET static int step_wide(struct stream *stream, const struct step *law, const struct columns *of, uint8_t *room,
                            uint32_t *places, uint64_t *largest) {
    switch (of->width) {
    case 2: return step_codes(stream, law, of, room, places, largest, 2);
    case 4: return step_codes(stream, law, of, room, places, largest, 4);
    default: return step_codes(stream, law, of, room, places, largest, 8);
    }
}

/* Draw one chunk after the other, of `most` objects. `room` is for four times as many bytes, `places` for two numbers
   more. Returns how many objects are drawn: all, or those of the chunks before one that needs more digits than there
   are here. */
TARGET static uint64_t step(const uint8_t *seed, const struct step *law, const struct columns *columns, uint64_t most,
                            uint8_t *room, uint32_t *places, struct reached *reached) {
    struct stream stream;
    uint64_t done = 0, count = columns->count, width = columns->width;
    begin_stream(&stream, seed, reached->position);
    for (; done < count; done += most) {
        size_t part = count - done < most ? count - done : most, at = done * width;
        struct columns its = {(const uint8_t *)columns->lower + at, (const uint8_t *)columns->upper + at,
                              (uint8_t *)columns->result + at, part, width};
        int decided = width == 1 ? step_bytes(&stream, law, &its, room, places, &reached->largest)
                                 : step_wide(&stream, law, &its, room, places, &reached->largest);
        if (!decided) break;
        reached->position = stream.position;
    }
    uint64_t used = count < most ? count : most;
    wipe(&stream, sizeof stream);
    wipe(room, 4 * used);
    wipe(places, (used + 2) * sizeof *places); /* of who was drawn anew */
    return done < count ? done : count;
}
