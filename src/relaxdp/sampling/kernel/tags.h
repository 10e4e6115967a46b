/* Tags: the CMAC of each message with one last block (index, symbol, try 0). What is kept for good (a coin, a seed) is
   the first word of a tag, and a table's fingerprint is the sum of its rows' tags.

   Included by narrow.h and wide.h, after messages.h. */

/* `index` and `symbol` are one word for each object, or NULL for zeros. The first words go to `first_words`, and the
   tags are added to the two words of `sums`, unless they are NULL. */
TARGET static uint64_t tags(const uint8_t *key_bytes, const struct messages *messages, const uint64_t *index,
                            const uint64_t *symbol, uint64_t *first_words, uint64_t *sums) {
    struct {
        struct key key;
        block state[PIECE + GROUP], room[PIECE + GROUP];
    } secret;
    uint64_t wrong = impossible_row(messages);
    if (wrong) return wrong;
    make_key(&secret.key, key_bytes);
    const uint64_t *subkey = secret.key.subkey.word;
    for (uint64_t first = 0; first < messages->count; first += PIECE) {
        size_t count = messages->count - first < PIECE ? messages->count - first : PIECE;
        absorb(&secret.key, messages, first, count, secret.state, secret.room);
        for (size_t i = 0; i < count; i++) {
            secret.state[i].word[0] ^= subkey[0] ^ (index ? index[first + i] : 0);
            secret.state[i].word[1] ^= subkey[1] ^ (symbol ? symbol[first + i] : 0);
        }
        encrypt_rows(&secret.key, secret.state, secret.state, count);
        for (size_t i = 0; first_words && i < count; i++) first_words[first + i] = secret.state[i].word[0];
        for (size_t i = 0; sums && i < count; i++) {
            sums[0] += secret.state[i].word[0];
            sums[1] += secret.state[i].word[1];
        }
    }
    wipe(&secret, sizeof secret);
    return 0;
}
