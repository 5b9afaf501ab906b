// The name of this build's ABI: an inline namespace that holds everything of pirn, so that objects which
// disagree about calling convention, layout or standard library fail to link instead of failing to run.
#pragma once

#include <version>

// The standard library, and a mark for each layout of its types that is not the usual one: pirn's types have such
// members.
#if defined(_LIBCPP_VERSION)
#include "pirn/detail/abi_libcxx.hpp"
#else
#define PIRN_ABI_LIBRARY libstdcxx
#if defined(_GLIBCXX_DEBUG) && defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define PIRN_ABI_LAYOUT _debug_oldstrings
#elif defined(_GLIBCXX_DEBUG)
#define PIRN_ABI_LAYOUT _debug
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define PIRN_ABI_LAYOUT _oldstrings
#else
#define PIRN_ABI_LAYOUT
#endif
#endif

// Rejects builds in which a thread has a second stack: a context switch cannot exchange it.
#if defined(__has_feature)
#if __has_feature(safe_stack)
#error "pirn: -fsanitize=safe-stack is not supported: each thread has a second stack, which no switch exchanges"
#elif __has_feature(shadow_call_stack)
#error \
    "pirn: -fsanitize=shadow-call-stack is not supported: each thread has a stack of returns, which no switch exchanges"
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define PIRN_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define PIRN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIRN_ASAN 1
#elif __has_feature(thread_sanitizer)
#define PIRN_TSAN 1
#endif
#endif

// PIRN_NONE marks a function that switches: a call of it preserves no register but sp and fp. PIRN_ASIDE marks a
// function that is called off a fast path: it preserves all general registers but one, so the fast path saves none for
// it. Each is empty where the compiler lacks its convention, and under ASan, which cannot realign a frame of
// preserve_none (x86).
//
// The name of the build tells the conventions apart: `none` is clang with both, `gnone` is gcc 15 and later with
// preserve_none alone, `plain` is a compiler without. Neither compiler documents which registers the other's
// preserve_none functions keep, so their objects do not link. tests/abi/convention.py probes the registers.
#if defined(__has_attribute) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(PIRN_ASAN)
#if __has_attribute(preserve_none)
#define PIRN_NONE __attribute__((preserve_none))
#define PIRN_HAS_NONE 1
#if !defined(__clang__)
#define PIRN_ABI_CONVENTION gnone
#else
#define PIRN_ABI_CONVENTION none
#define PIRN_ASIDE __attribute__((preserve_most))
#endif
#endif
#endif
#ifndef PIRN_NONE
#define PIRN_NONE
#define PIRN_ABI_CONVENTION plain
#endif
#ifndef PIRN_ASIDE
#define PIRN_ASIDE
#endif

#if defined(PIRN_ASAN)
#define PIRN_ABI_SANITIZER asan
#elif defined(PIRN_TSAN)
#define PIRN_ABI_SANITIZER tsan
#elif defined(PIRN_VALGRIND)
#define PIRN_ABI_SANITIZER valgrind
#else
#define PIRN_ABI_SANITIZER nosan
#endif

#if defined(PIRN_KEEP_FP_WORDS)
#define PIRN_ABI_FP fpkept
#else
#define PIRN_ABI_FP fpshared
#endif

#if defined(PIRN_SIM)
#define PIRN_ABI_EXPLORES _sim
#else
#define PIRN_ABI_EXPLORES
#endif

#define PIRN_ABI_JOIN2(a, b, c, d, e, f) v1_##a##_##b##_##c##_##d##e##f
#define PIRN_ABI_JOIN(a, b, c, d, e, f) PIRN_ABI_JOIN2(a, b, c, d, e, f)
#define PIRN_ABI_TEXT2(x) #x
#define PIRN_ABI_TEXT(x) PIRN_ABI_TEXT2(x)

/// The inline namespace of this build, for example v1_none_nosan_fpshared_libstdcxx. Its parts: calling convention of
/// switching functions, sanitizer, floating-point control words (shared or kept per context), standard library, layouts
/// that macros have changed (such as _debug for _GLIBCXX_DEBUG), and whether the build explores interleavings.
#define PIRN_ABI                                                                                         \
  PIRN_ABI_JOIN(PIRN_ABI_CONVENTION, PIRN_ABI_SANITIZER, PIRN_ABI_FP, PIRN_ABI_LIBRARY, PIRN_ABI_LAYOUT, \
                PIRN_ABI_EXPLORES)
/// Enclose everything of pirn. Each stands on a separate line after a plain `namespace pirn {`, as in Abseil and
/// libc++: editors and indexers do not preprocess, and so they see the declarations.
#define PIRN_ABI_NAMESPACE_BEGIN inline namespace PIRN_ABI {
#define PIRN_ABI_NAMESPACE_END }
/// `PIRN_ABI` as a string literal. It becomes part of the names of symbols that are not mangled.
#define PIRN_ABI_NAME PIRN_ABI_TEXT(PIRN_ABI)

// Always inlined, and not instrumented: calls of the instrumentation would stand in the middle of a switch.
#define PIRN_ALWAYS_INLINE inline __attribute__((always_inline, no_instrument_function))
#define PIRN_NOINLINE __attribute__((noinline))
// Inlines much code for speed, so only with an optimizer and without a sanitizer. Elsewhere each variable of each call
// would take separate space in the caller's frame, and a few calls would fill a stack.
#if defined(__OPTIMIZE__) && !defined(PIRN_ASAN) && !defined(PIRN_TSAN)
#define PIRN_INLINE_FOR_SPEED PIRN_ALWAYS_INLINE
#else
#define PIRN_INLINE_FOR_SPEED
#endif
// Marks a function that is seldom called, and that does not get in the way of the code around the call.
#define PIRN_COLD __attribute__((cold, noinline))
// Marks a function that no fiber with a bounded stack calls on that stack. The compiler plugin, which adds up the stack
// use of such a fiber, cannot see this from the code around the call. The comment at the call, or at the function, says
// why it holds.
#if defined(__clang__)
#define PIRN_NEVER_BOUNDED __attribute__((noinline, annotate("pirn-stack: 0")))
// Marks a function that ends the process with a message. It may overwrite the stacks below a small one, since they no
// longer matter.
#define PIRN_ENDS_PROCESS __attribute__((noinline, annotate("pirn-stack: noreturn")))
// Marks a function that is not inlined and that, with all it calls, uses no more stack than an unwind, for which the
// compiler plugin reserves room on the stack of a generator (6144 bytes; it has that number too).
#define PIRN_AS_DEEP_AS_UNWIND __attribute__((annotate("pirn-stack: 6144")))
// Marks a function that one source file of pirn defines and no other code can, though its symbol is weak: an
// instantiated member of a class template, or a function that is declared weak.
#define PIRN_DEFINED_ONCE __attribute__((annotate("pirn-stack: defined once")))
#else
#define PIRN_NEVER_BOUNDED __attribute__((noinline))
#define PIRN_ENDS_PROCESS __attribute__((noinline))
#define PIRN_AS_DEEP_AS_UNWIND
#define PIRN_DEFINED_ONCE
#endif
