/* What is done with blocks and bytes whatever encrypts them. TARGET is said by whoever includes this. */
#include <string.h>

#include "kernel.h"
#include "vectors.h"

/* A plain memset of what is not read again is left out by compilers; this they must keep. */
static void wipe(void *secret, size_t size) {
    memset(secret, 0, size);
    __asm__ __volatile__("" : : "r"(secret) : "memory");
}

TARGET static inline __m128i load(const block *from) { return _mm_load_si128((const __m128i *)from); }

TARGET static inline void store(block *to, __m128i value) { _mm_store_si128((__m128i *)to, value); }

/* Bytes that are handled together, and pairs of them. WIDTH is said by whoever includes this. It is what a register
   holds: of something wider compilers may make loops over single bytes. */
typedef uint8_t lanes __attribute__((vector_size(WIDTH)));
typedef uint16_t pairs __attribute__((vector_size(WIDTH)));
