/* How often each code of one byte occurs.

   Included by narrow.h and wide.h, after each has said how many values it compares one by one (`FEW`). */

/* Few values: each is compared with WIDTH codes at a time, and a lane counts up to 255 of them. */
TARGET static void count_few(const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts) {
    enum { TOGETHER = 4, MOST = 255 * WIDTH };
    uint64_t done = 0;
    while (count - done >= WIDTH) {
        uint64_t part = (count - done < MOST ? count - done : MOST) / WIDTH * WIDTH;
        for (uint64_t value = 0; value < values; value += TOGETHER) { /* the part stays in the cache */
            lanes seen[TOGETHER] = {{0}};
            for (uint64_t at = 0; at < part; at += WIDTH) {
                lanes given;
                memcpy(&given, codes + done + at, WIDTH);
                for (int i = 0; i < TOGETHER; i++) seen[i] -= (lanes)(given == (uint8_t)(value + i));
            }
            for (int i = 0; i < TOGETHER; i++)
                for (int lane = 0; lane < WIDTH; lane++) counts[value + i] += seen[i][lane];
        }
        done += part;
    }
    for (; done < count; done++) counts[codes[done]]++;
}

/* Many values: eight tables, so that equal neighbours do not wait for one another. */
TARGET static void count_many(const uint8_t *codes, uint64_t count, uint64_t *counts) {
    uint64_t tables[8][256] = {{0}}, done = 0;
    for (; count - done >= 8; done += 8)
        for (int i = 0; i < 8; i++) tables[i][codes[done + i]]++;
    for (; done < count; done++) tables[0][codes[done]]++;
    for (int value = 0; value < 256; value++)
        for (int i = 0; i < 8; i++) counts[value] += tables[i][value];
}

/* Add to the 256 `counts` how often each code below `values` occurs; of others, not all need be counted. */
TARGET static void histogram(const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts) {
    /* A table takes a cycle for each code, because it is one store; comparing takes the longer, the more values. */
    if (values > FEW)
        count_many(codes, count, counts);
    else
        count_few(codes, count, values, counts);
}
