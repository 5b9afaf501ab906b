// The switches that only fibers need, beside those of arch.hpp: a call on another stack whose continuation can be
// resumed elsewhere (`fork_root`, `fork_into`, `fork_back`), and a `switch_to` that carries a third word
// (`switch_to_with_word`). The 64-bit instruction sets have them, so fibers run there.
#pragma once

#include "pirn/context/arch.hpp"  // IWYU pragma: export

#if defined(__x86_64__) && !defined(__ILP32__)
#include "pirn/context/arch/x86_64/fork.hpp"              // IWYU pragma: export
#include "pirn/context/arch/x86_64/switch_with_word.hpp"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "pirn/context/arch/aarch64_fork.hpp"  // IWYU pragma: export
#elif defined(__riscv)
#include "pirn/context/arch/riscv64_fork.hpp"  // IWYU pragma: export
#elif defined(__powerpc64__)
#include "pirn/context/arch/ppc64le_fork.hpp"  // IWYU pragma: export
#else
#error "pirn: fibers run on 64-bit instruction sets only; contexts, stacks and coroutines run on this one too"
#endif
