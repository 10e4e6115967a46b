/* The last blocks of integer ids, from the ids to the rows in registers: what `absorb` and `last_blocks` make of whole
   groups, for messages that are nothing but an integer.

   Included by wide.h, after walk_wide.h. Returns how many rows there are now. */
TARGET static size_t integer_rows(const struct key *key, const struct messages *of, uint64_t first,
                                  const uint64_t *index, block *rows, size_t count) {
    if (!of->integers || of->more_blocks) return 0;
    wide header = all_words(UINT64_C(8) << 32 | 1), large = all_words(of->is_unsigned);
    wide subkey = all_blocks(load(&key->subkey));
    size_t done = 0;
    for (; count - done >= GROUP; done += GROUP) {
        wide x[REGISTERS];
#pragma GCC unroll 4
        for (int i = 0; i < REGISTERS / 2; i++) {
            wide ids = load_wide(of->integers + first + done + LANES * i);
            make_rows(x + 2 * i, add(header, large & shift_right(ids, 63)), ids);
        }
        encrypt_group(key, x);
#pragma GCC unroll 4
        for (int i = 0; i < REGISTERS / 2; i++) {
            wide last[2];
            make_rows(last, load_wide(index + done + LANES * i), all_words(0));
            store_wide(rows + done + LANES * i, last[0] ^ x[2 * i] ^ subkey);
            store_wide(rows + done + LANES * i + LANES / 2, last[1] ^ x[2 * i + 1] ^ subkey);
        }
    }
    return done;
}
