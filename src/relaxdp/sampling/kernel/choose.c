/* Which instructions this processor has, and the doors through which Python comes in. */
#include "kernel.h"

DOOR int relaxdp_version(void) { return KERNEL_VERSION; }

#if defined(__aarch64__)
#if defined(__linux__)
#include <sys/auxv.h>
#endif

DOOR int relaxdp_best(void) {
#if defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_AES ? NEON : NONE;
#elif defined(__APPLE__)
    return NEON; /* all of them have it */
#else
    return NONE;
#endif
}

static const struct instructions *instructions_of(int set) {
    (void)set;
    return &neon_instructions;
}
#else
#include <cpuid.h>

static uint64_t saved_registers(void) { /* those that the operating system keeps for each process */
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* The best set that this processor has, with registers that the operating system keeps: 16 bytes (always), 32 or 64. */
DOOR int relaxdp_best(void) {
    enum { KEEPS_32 = 0x06, KEEPS_64 = 0xe6 };
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_AES) || !(c & bit_POPCNT)) return NONE;
    uint64_t saved = c & bit_OSXSAVE ? saved_registers() : 0;
    if ((saved & KEEPS_32) != KEEPS_32 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return AESNI;
    if (!(b & bit_AVX2) || !(c & bit_VAES)) return AESNI;
    const uint32_t needed = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    int has_avx512 = (b & needed) == needed && (c & bit_AVX512VBMI2);
    return has_avx512 && (saved & KEEPS_64) == KEEPS_64 ? AVX512 : VAES;
}

static const struct instructions *instructions_of(int set) {
    return set == AVX512 ? &avx512_instructions : set == VAES ? &vaes_instructions : &aesni_instructions;
}
#endif

DOOR uint64_t relaxdp_draw(int set, const uint8_t *key, const struct level *level, const struct messages *messages,
                           const uint64_t *index, uint64_t symbols, void *target, uint64_t width) {
    struct codes codes = {target, width};
    return instructions_of(set)->draw(key, level, messages, index, symbols, codes);
}

DOOR uint64_t relaxdp_tags(int set, const uint8_t *key, const struct messages *messages, const uint64_t *index,
                           const uint64_t *symbol, uint64_t *first_words, uint64_t *sums) {
    return instructions_of(set)->tags(key, messages, index, symbol, first_words, sums);
}

DOOR uint64_t relaxdp_step(int set, const uint8_t *seed, const struct step *law, const struct columns *columns,
                           uint64_t most, uint8_t *room, uint32_t *places, struct reached *reached) {
    return instructions_of(set)->step(seed, law, columns, most, room, places, reached);
}

DOOR void relaxdp_histogram(int set, const uint8_t *codes, uint64_t count, uint64_t values, uint64_t *counts) {
    instructions_of(set)->histogram(codes, count, values, counts);
}
