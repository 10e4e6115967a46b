/* The path with AES-NI. */
#if defined(__x86_64__) || defined(_M_X64)
#define TARGET __attribute__((target("aes,popcnt")))
#define INSTRUCTIONS aesni_instructions
#include "narrow.h"
#endif
