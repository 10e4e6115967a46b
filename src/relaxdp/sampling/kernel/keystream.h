/* AES-256 in counter mode: the bytes of a keystream, as `Keystream` in entropy.py has them.

   Included by narrow.h and wide.h, after messages.h and after each has said how it encrypts numbers in ascending order
   (`encrypt_counters`). */

struct stream {
    struct key key;
    uint64_t high, low; /* the first counter, a number of 16 bytes */
    uint64_t position;  /* of the next byte */
    _Alignas(64) block made[PIECE + GROUP];
};

/* A seed is 32 bytes of key and 16 of counter, the highest first. */
TARGET static void begin_stream(struct stream *stream, const uint8_t *seed, uint64_t position) {
    make_key(&stream->key, seed);
    memcpy(&stream->high, seed + 32, 8);
    memcpy(&stream->low, seed + 40, 8);
    stream->high = __builtin_bswap64(stream->high);
    stream->low = __builtin_bswap64(stream->low);
    stream->position = position;
}

/* The next bytes, at most so many that they lie within PIECE blocks; they stay until the next call. */
TARGET static const uint8_t *next_bytes(struct stream *stream, uint64_t size) {
    uint64_t first = stream->low + stream->position / 16, skip = stream->position % 16;
    uint64_t high = stream->high + (first < stream->low), blocks = (skip + size + 15) / 16;
    if (first + blocks < first) { /* the lower half overflows: a loop of its own, so that the other one is simple */
        for (uint64_t i = 0; i < blocks; i++) {
            stream->made[i].word[0] = __builtin_bswap64(high + (first + i < first));
            stream->made[i].word[1] = __builtin_bswap64(first + i);
        }
        encrypt_rows(&stream->key, stream->made, stream->made, blocks);
    } else
        encrypt_counters(&stream->key, high, first, stream->made, blocks);
    stream->position += size;
    return (const uint8_t *)stream->made + skip;
}
