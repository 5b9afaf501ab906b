/* Names of aco.h's assertions without their prefix. Must be included last: it replaces <assert.h>. */
#ifndef PIRN_COMPAT_ACO_ASSERT_OVERRIDE_H
#define PIRN_COMPAT_ACO_ASSERT_OVERRIDE_H

#include "aco.h"

#undef assert
#define likely(x) aco_likely(x)
#define unlikely(x) aco_unlikely(x)
#define assert(EX) aco_assert(EX)
#define assertptr(ptr) aco_assertptr(ptr)
#define assertalloc_bool(b) aco_assertalloc_bool(b)
#define assertalloc_ptr(ptr) aco_assertalloc_ptr(ptr)

#endif
