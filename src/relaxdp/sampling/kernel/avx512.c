/* The path with VAES and AVX-512. */
#if defined(__x86_64__) || defined(_M_X64)
#define TARGET __attribute__((target("aes,vaes,avx2,avx512bw,avx512dq,avx512vl,avx512vbmi2,popcnt")))
#define INSTRUCTIONS avx512_instructions
enum { WIDTH = 32, FEW = 48 };
#include "aes.h"
#include "eight.h"
#include "wide.h"
#endif
