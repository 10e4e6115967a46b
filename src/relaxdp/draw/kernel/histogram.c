/* How often each code of one byte occurs. It needs no AES. */
#include <string.h>

#include "kernel.h"

/* Compilers make of it what the function that it is in may use: one register of 32 bytes, or two of 16. */
typedef uint8_t lanes __attribute__((vector_size(32)));

/* Few values: each is compared with 32 codes at a time, and a lane counts up to 255 of them. */
__attribute__((always_inline)) static inline void count_few(const uint8_t *codes, uint64_t count, uint64_t values,
                                                            uint64_t *counts) {
    enum { WIDTH = sizeof(lanes), TOGETHER = 4, MOST = 255 * WIDTH };
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

static void count_few_anywhere(const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts) {
    count_few(codes, count, values, counts);
}

__attribute__((target("avx2"))) static void count_few_wide(const uint8_t *codes, uint64_t count, uint64_t values,
                                                           uint64_t *counts) {
    count_few(codes, count, values, counts);
}

/* Many values: eight tables, so that equal neighbours do not wait for one another. */
static void count_many(const uint8_t *codes, uint64_t count, uint64_t *counts) {
    uint64_t tables[8][256] = {{0}}, done = 0;
    for (; count - done >= 8; done += 8)
        for (int i = 0; i < 8; i++) tables[i][codes[done + i]]++;
    for (; done < count; done++) tables[0][codes[done]]++;
    for (int value = 0; value < 256; value++)
        for (int i = 0; i < 8; i++) counts[value] += tables[i][value];
}

/* Add to the 256 `counts` how often each code below `values` occurs; of others, not all need be counted. */
DOOR void relaxdp_histogram(int set, const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts) {
    if (values > 16)
        count_many(codes, count, counts);
    else if (set == VAES)
        count_few_wide(codes, count, values, counts);
    else
        count_few_anywhere(codes, count, values, counts);
}
