/* What the compiled path offers to Python (loaded.py calls it through ctypes), and the words that its files share.

   Every function is handed its key and forgets it: nothing secret outlives a call, and nothing is allocated. The frozen
   stream is docs/stream.md; what NumPy makes of it (path.py, stream.py) is the reference, bit for bit. */
#ifndef RELAXDP_KERNEL_H
#define RELAXDP_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* What Python may call. */
#define DOOR __attribute__((visibility("default")))

/* Python asks for this number and leaves a library alone that was built from other sources. */
#define KERNEL_VERSION 9

/* One block of AES as two little-endian words: of a message, or (position word, value word) of the stream. */
typedef struct {
    _Alignas(16) uint64_t word[2];
} block;

/* The messages of `count` objects up to their last block, not laid out yet. The first blocks are those of an id: of an
   integer, or of bytes (text, UUIDs) if `integers` is NULL, or of none if `offsets` is NULL as well. After them come
   `more_blocks` blocks that are laid out already: block b of object i is the two words from more[2 * (b * count + i)] on. */
struct messages {
    uint64_t count;
    const uint64_t *integers;
    uint64_t is_unsigned;   /* 1: integers from 2^63 on have a tag of their own; 0: they are negative */
    const int64_t *offsets; /* bytes of object i: bytes[offsets[i]] up to bytes[offsets[i + 1]] */
    const uint8_t *bytes;
    uint64_t size; /* how many bytes there are in all: nothing beyond is read, whatever the offsets say */
    uint64_t tag;
    const uint64_t *more; /* words and not blocks: those of a caller need not be aligned as ours are */
    uint64_t more_blocks;
};

/* A column as Arrow has it: whole numbers, or bytes of any length if `integers` is NULL. */
struct column {
    uint64_t count;
    const uint64_t *integers;
    const void *offsets; /* count + 1 of them */
    uint64_t width;      /* bytes of an offset: 4 or 8 */
    const uint8_t *bytes;
    uint64_t size; /* how many bytes there are in all: nothing beyond is read, whatever the offsets say */
};

/* Where a path is read: a position below the threshold ends it, and a report is one of so many values. */
struct level {
    uint64_t threshold; /* at least 1 */
    uint64_t values;    /* at least 2 */
};

/* Codes of 1, 2, 4 or 8 bytes each. */
struct codes {
    void *first;
    uint64_t width;
};

/* A probability for objects whose two ends agree and one for others: a first byte, and 64 binary digits after it.
   `is_decided`: there are none after it, and `decided` is what a tie with the first byte means. */
struct chance {
    uint64_t digits[2];
    uint8_t tops[2], decided[2], is_decided;
};

/* A step between two columns of reports: `first` is the chance to flip the upper report (two values) or to go to it, and
   `redraw` that of any value (more than two). */
struct step {
    uint64_t values; /* from 2 to 256 */
    struct chance first, redraw;
};

/* The codes of both ends, of one byte each, and where the draws go. */
struct columns {
    const uint8_t *lower, *upper;
    uint8_t *result;
    uint64_t count;
};

/* Where the keystream goes on, and the largest code so far: none may be outside of the alphabet. */
struct reached {
    uint64_t position, largest;
};

/* One implementation for each set of instructions. Those that read ids return 0, or 1 + a row that is impossible. */
struct instructions {
    uint64_t (*draw)(const uint8_t *key, const struct level *level, const struct messages *messages,
                     const uint64_t *index, uint64_t symbols, struct codes target);
    uint64_t (*tags)(const uint8_t *key, const struct messages *messages, const uint64_t *index, const uint64_t *symbol,
                     uint64_t *first_words, uint64_t *sums);
    uint64_t (*step)(const uint8_t *seed, const struct step *law, const struct columns *columns, uint64_t most,
                     uint8_t *room, uint32_t *places, struct reached *reached);
    void (*histogram)(const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts);
};

extern const struct instructions aesni_instructions, vaes_instructions, avx512_instructions, neon_instructions;

/* The names by which Python and choose.c know the sets. On x86-64 each has all that the one before it has. */
enum { NONE = 0, AESNI = 1, VAES = 2, AVX512 = 3, NEON = 4 };

#endif
