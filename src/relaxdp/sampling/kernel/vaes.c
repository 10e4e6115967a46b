/* The path with VAES and AVX2. */
#if defined(__x86_64__) || defined(_M_X64)
#define TARGET __attribute__((target("aes,vaes,avx2,popcnt")))
#define INSTRUCTIONS vaes_instructions
enum { WIDTH = 32, FEW = 48 };
#include "aes.h"
#include "four.h"
#include "wide.h"
#endif
