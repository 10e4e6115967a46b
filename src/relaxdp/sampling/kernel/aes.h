/* AES-256 with the processor's own instructions, and the first subkey of CMAC.

   There is no AES in portable C here: its tables would be read at places that depend on the key, and the cache shows
   places. Without these instructions the package uses the `cryptography` library instead.

   Included by narrow.h and wide.h, each of which knows what TARGET is: the instructions that a function may use. */
#include "blocks.h"

enum { ROUNDS = 14 };

struct key {
    __m128i round[ROUNDS + 1];
    block subkey;
};

/* Each word of a round key is the one four places before it, XORed with the word before it: a running XOR. */
TARGET static inline __m128i next_round_key(__m128i before, __m128i mixed) {
    before = _mm_xor_si128(before, _mm_slli_si128(before, 4));
    before = _mm_xor_si128(before, _mm_slli_si128(before, 8));
    return _mm_xor_si128(before, mixed);
}

/* FIPS 197, section 5.2. The round constants must be written out: they are part of the instruction. */
TARGET static void expand_key(struct key *key, const uint8_t *bytes) {
    __m128i *round = key->round;
    round[0] = _mm_loadu_si128((const __m128i *)bytes);
    round[1] = _mm_loadu_si128((const __m128i *)(bytes + 16));
    for (int i = 2; i <= ROUNDS; i++) {
        __m128i last = round[i - 1], mixed;
        switch (i) {
        case 2: mixed = _mm_aeskeygenassist_si128(last, 0x01); break;
        case 4: mixed = _mm_aeskeygenassist_si128(last, 0x02); break;
        case 6: mixed = _mm_aeskeygenassist_si128(last, 0x04); break;
        case 8: mixed = _mm_aeskeygenassist_si128(last, 0x08); break;
        case 10: mixed = _mm_aeskeygenassist_si128(last, 0x10); break;
        case 12: mixed = _mm_aeskeygenassist_si128(last, 0x20); break;
        case 14: mixed = _mm_aeskeygenassist_si128(last, 0x40); break;
        default: mixed = _mm_aeskeygenassist_si128(last, 0x00);
        }
        /* Even round keys take the rotated word with its constant, odd ones the word that is only substituted. */
        mixed = i % 2 == 0 ? _mm_shuffle_epi32(mixed, 0xff) : _mm_shuffle_epi32(mixed, 0xaa);
        round[i] = next_round_key(round[i - 2], mixed);
    }
}

TARGET static inline __m128i encrypt_one(const struct key *key, __m128i x) {
    x = _mm_xor_si128(x, key->round[0]);
    for (int i = 1; i < ROUNDS; i++) x = _mm_aesenc_si128(x, key->round[i]);
    return _mm_aesenclast_si128(x, key->round[ROUNDS]);
}

/* CMAC's first subkey is E(0) doubled in GF(2^128). Every message is whole blocks, so the second one is never used. */
TARGET static void make_key(struct key *key, const uint8_t *bytes) {
    expand_key(key, bytes);
    block zero;
    store(&zero, encrypt_one(key, _mm_setzero_si128()));
    uint64_t high = __builtin_bswap64(zero.word[0]), low = __builtin_bswap64(zero.word[1]);
    uint64_t carry = high >> 63;
    high = high << 1 | low >> 63;
    low = (low << 1) ^ (carry * 0x87);
    key->subkey.word[0] = __builtin_bswap64(high);
    key->subkey.word[1] = __builtin_bswap64(low);
    wipe(&zero, sizeof zero);
}
