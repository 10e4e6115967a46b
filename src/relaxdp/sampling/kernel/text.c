/* NumPy's text: `width` code points for each row, with NULs behind the last letter. It needs no AES, and no more than
   what every processor of 64 bits has. */
#include <string.h>

#include "kernel.h"
#include "vectors.h"

enum { TOGETHER = 16 }; /* letters */

/* 16 code points as bytes. Those that are no bytes become wrong ones: `seen` collects the bits of all. */
static inline __m128i narrow(const uint32_t *points, __m128i *seen) {
    __m128i quarter[4];
    for (int i = 0; i < 4; i++) {
        quarter[i] = _mm_loadu_si128((const __m128i *)(points + 4 * i));
        *seen = _mm_or_si128(*seen, quarter[i]);
    }
    return _mm_packus_epi16(_mm_packs_epi32(quarter[0], quarter[1]), _mm_packs_epi32(quarter[2], quarter[3]));
}

/* Write the letters of all rows one after the other, and where each row begins; `letters` has room for all code points
   and TOGETHER more. Returns 0 where the rows are not ASCII, or where a NUL has a letter behind it. */
DOOR int relaxdp_letters(const uint32_t *points, uint64_t count, uint64_t width, int64_t *offsets, uint8_t *letters) {
    const uint32_t *end = points + count * width;
    uint64_t written = 0;
    uint32_t gaps = 0;
    __m128i seen = _mm_setzero_si128();
    offsets[0] = 0;
    for (uint64_t row = 0; row < count; row++, points += width) {
        uint64_t length = 0;
        for (uint64_t at = 0; at < width; at += TOGETHER) {
            const uint32_t *from = points + at;
            uint32_t last[TOGETHER], left = width - at < TOGETHER ? (uint32_t)(width - at) : TOGETHER;
            if (__builtin_expect(end - from < TOGETHER, 0)) { /* behind the last ones of all is what is not ours */
                memset(last, 0, sizeof last);
                from = memcpy(last, from, left * sizeof *last);
            }
            __m128i bytes = narrow(from, &seen);
            uint32_t empty = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
            uint32_t used = ~empty & ((UINT32_C(1) << left) - 1);
            /* Letters must begin where those before them end, and be the lowest bits without a gap. */
            gaps |= (used & (used + 1)) | (used && length < at);
            _mm_storeu_si128((__m128i *)(letters + written + at), bytes);
            length += (uint64_t)__builtin_ctz(~used);
        }
        written += length;
        offsets[row + 1] = (int64_t)written;
    }
    uint32_t bits[4];
    _mm_storeu_si128((__m128i *)bits, seen);
    return !gaps && (bits[0] | bits[1] | bits[2] | bits[3]) < 128;
}
