/* The path with the AES instructions of 64-bit Arm. */
#if defined(__aarch64__)
#define TARGET __attribute__((target("+aes")))
#define INSTRUCTIONS neon_instructions
#include "narrow.h"
#endif
