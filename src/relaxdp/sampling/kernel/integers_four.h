/* The last blocks of integer ids with AVX2, from the ids to the rows in registers: what `absorb` and `last_blocks` make of
   whole groups, for messages that are nothing but an integer.

   Included by vaes.c, after walk_four.h. */
TARGET static void integer_rows_four(const struct key *key, const struct messages *of, uint64_t first,
                                     const uint64_t *index, block *rows, size_t groups) {
    four header = _mm256_set1_epi64x(INT64_C(8) << 32 | 1), large = _mm256_set1_epi64x((int64_t)of->is_unsigned);
    four subkey = both(load(&key->subkey)), zero = _mm256_setzero_si256();
    for (size_t group = 0; group < groups; group++) {
        const uint64_t *integers = of->integers + first + GROUP * group, *indices = index + GROUP * group;
        block *to = rows + GROUP * group;
        four x[GROUP / 2];
#pragma GCC unroll 4
        for (int i = 0; i < GROUP / 4; i++) { /* ids a, b, c, d: the blocks of a and c, and those of b and d */
            four ids = load_four(integers + 4 * i);
            four tags = _mm256_add_epi64(header, _mm256_and_si256(large, _mm256_srli_epi64(ids, 63)));
            x[2 * i] = _mm256_unpacklo_epi64(tags, ids);
            x[2 * i + 1] = _mm256_unpackhi_epi64(tags, ids);
        }
        encrypt_group(key, x);
#pragma GCC unroll 4
        for (int i = 0; i < GROUP / 4; i++) {
            four its_index = load_four(indices + 4 * i);
            four even = _mm256_xor_si256(x[2 * i], _mm256_xor_si256(subkey, _mm256_unpacklo_epi64(its_index, zero)));
            four odd = _mm256_xor_si256(x[2 * i + 1], _mm256_xor_si256(subkey, _mm256_unpackhi_epi64(its_index, zero)));
            store(to + 4 * i, _mm256_castsi256_si128(even));
            store(to + 4 * i + 1, _mm256_castsi256_si128(odd));
            store(to + 4 * i + 2, _mm256_extracti128_si256(even, 1));
            store(to + 4 * i + 3, _mm256_extracti128_si256(odd, 1));
        }
    }
}
