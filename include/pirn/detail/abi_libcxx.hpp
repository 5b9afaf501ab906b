// libc++ as macros have configured it: its name, and a letter for each layout of its types that is not the usual one.
// Part of PIRN_ABI, since pirn's own types have members of these types. Included by abi.hpp only.
#pragma once

#define PIRN_ABI_LIBRARY libcxx
#if _LIBCPP_ABI_VERSION == 1
#define PIRN_ABI_LIBCXX_VERSION
#else
#define PIRN_ABI_LIBCXX_VERSION _LIBCPP_ABI_VERSION
#endif
#if defined(_LIBCPP_ABI_ALTERNATE_STRING_LAYOUT)
#define PIRN_ABI_LIBCXX_A a
#else
#define PIRN_ABI_LIBCXX_A
#endif
#if defined(_LIBCPP_ABI_BOUNDED_ITERATORS)
#define PIRN_ABI_LIBCXX_B b
#else
#define PIRN_ABI_LIBCXX_B
#endif
#if defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_STRING)
#define PIRN_ABI_LIBCXX_C c
#else
#define PIRN_ABI_LIBCXX_C
#endif
#if defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_VECTOR)
#define PIRN_ABI_LIBCXX_D d
#else
#define PIRN_ABI_LIBCXX_D
#endif
#if defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_OPTIONAL)
#define PIRN_ABI_LIBCXX_E e
#else
#define PIRN_ABI_LIBCXX_E
#endif
#if defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_STD_ARRAY)
#define PIRN_ABI_LIBCXX_F f
#else
#define PIRN_ABI_LIBCXX_F
#endif
#if defined(_LIBCPP_ABI_BOUNDED_UNIQUE_PTR)
#define PIRN_ABI_LIBCXX_G g
#else
#define PIRN_ABI_LIBCXX_G
#endif
#if defined(_LIBCPP_ABI_ENABLE_SHARED_PTR_TRIVIAL_ABI)
#define PIRN_ABI_LIBCXX_H h
#else
#define PIRN_ABI_LIBCXX_H
#endif
#if defined(_LIBCPP_ABI_ENABLE_UNIQUE_PTR_TRIVIAL_ABI)
#define PIRN_ABI_LIBCXX_I i
#else
#define PIRN_ABI_LIBCXX_I
#endif
#if defined(_LIBCPP_ABI_FIX_UNORDERED_CONTAINER_SIZE_TYPE)
#define PIRN_ABI_LIBCXX_J j
#else
#define PIRN_ABI_LIBCXX_J
#endif
#if defined(_LIBCPP_ABI_NO_COMPRESSED_PAIR_PADDING)
#define PIRN_ABI_LIBCXX_K k
#else
#define PIRN_ABI_LIBCXX_K
#endif
#if defined(_LIBCPP_ABI_NO_ITERATOR_BASES)
#define PIRN_ABI_LIBCXX_L l
#else
#define PIRN_ABI_LIBCXX_L
#endif
#if defined(_LIBCPP_ABI_NO_REVERSE_ITERATOR_SECOND_MEMBER)
#define PIRN_ABI_LIBCXX_M m
#else
#define PIRN_ABI_LIBCXX_M
#endif
#if defined(_LIBCPP_ABI_OPTIMIZED_FUNCTION)
#define PIRN_ABI_LIBCXX_N n
#else
#define PIRN_ABI_LIBCXX_N
#endif
#if defined(_LIBCPP_ABI_TRIVIALLY_COPYABLE_BIT_ITERATOR)
#define PIRN_ABI_LIBCXX_O o
#else
#define PIRN_ABI_LIBCXX_O
#endif
#if defined(_LIBCPP_ABI_USE_WRAP_ITER_IN_STD_ARRAY)
#define PIRN_ABI_LIBCXX_P p
#else
#define PIRN_ABI_LIBCXX_P
#endif
#if defined(_LIBCPP_ABI_USE_WRAP_ITER_IN_STD_STRING_VIEW)
#define PIRN_ABI_LIBCXX_Q q
#else
#define PIRN_ABI_LIBCXX_Q
#endif
#if defined(_LIBCPP_ABI_VARIANT_INDEX_TYPE_OPTIMIZATION)
#define PIRN_ABI_LIBCXX_R r
#else
#define PIRN_ABI_LIBCXX_R
#endif
#if defined(_LIBCPP_ABI_ATOMIC_WAIT_NATIVE_BY_SIZE)
#define PIRN_ABI_LIBCXX_S s
#else
#define PIRN_ABI_LIBCXX_S
#endif
#if defined(_LIBCPP_ABI_NO_RANDOM_DEVICE_COMPATIBILITY_LAYOUT)
#define PIRN_ABI_LIBCXX_T t
#else
#define PIRN_ABI_LIBCXX_T
#endif
#if defined(_LIBCPP_DEPRECATED_ABI_DISABLE_PAIR_TRIVIAL_COPY_CTOR)
#define PIRN_ABI_LIBCXX_U u
#else
#define PIRN_ABI_LIBCXX_U
#endif
#if defined(_LIBCPP_DEPRECATED_ABI_NON_TRIVIAL_ALLOCATOR)
#define PIRN_ABI_LIBCXX_V v
#else
#define PIRN_ABI_LIBCXX_V
#endif
#define PIRN_ABI_LETTERS2(version, xa, xb, xc, xd, xe, xf, xg, xh, xi, xj, xk, xl, xm, xn, xo, xp, xq, xr, xs, xt, xu, \
                          xv)                                                                                          \
  _layout##version##xa##xb##xc##xd##xe##xf##xg##xh##xi##xj##xk##xl##xm##xn##xo##xp##xq##xr##xs##xt##xu##xv
#define PIRN_ABI_LETTERS(...) PIRN_ABI_LETTERS2(__VA_ARGS__)
#if defined(_LIBCPP_ABI_ALTERNATE_STRING_LAYOUT) || defined(_LIBCPP_ABI_BOUNDED_ITERATORS) ||                        \
    defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_STRING) || defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_VECTOR) ||          \
    defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_OPTIONAL) || defined(_LIBCPP_ABI_BOUNDED_ITERATORS_IN_STD_ARRAY) ||     \
    defined(_LIBCPP_ABI_BOUNDED_UNIQUE_PTR) || defined(_LIBCPP_ABI_ENABLE_SHARED_PTR_TRIVIAL_ABI) ||                 \
    defined(_LIBCPP_ABI_ENABLE_UNIQUE_PTR_TRIVIAL_ABI) || defined(_LIBCPP_ABI_FIX_UNORDERED_CONTAINER_SIZE_TYPE) ||  \
    defined(_LIBCPP_ABI_NO_COMPRESSED_PAIR_PADDING) || defined(_LIBCPP_ABI_NO_ITERATOR_BASES) ||                     \
    defined(_LIBCPP_ABI_NO_REVERSE_ITERATOR_SECOND_MEMBER) || defined(_LIBCPP_ABI_OPTIMIZED_FUNCTION) ||             \
    defined(_LIBCPP_ABI_TRIVIALLY_COPYABLE_BIT_ITERATOR) || defined(_LIBCPP_ABI_USE_WRAP_ITER_IN_STD_ARRAY) ||       \
    defined(_LIBCPP_ABI_USE_WRAP_ITER_IN_STD_STRING_VIEW) || defined(_LIBCPP_ABI_VARIANT_INDEX_TYPE_OPTIMIZATION) || \
    defined(_LIBCPP_ABI_ATOMIC_WAIT_NATIVE_BY_SIZE) || defined(_LIBCPP_ABI_NO_RANDOM_DEVICE_COMPATIBILITY_LAYOUT) || \
    defined(_LIBCPP_DEPRECATED_ABI_DISABLE_PAIR_TRIVIAL_COPY_CTOR) ||                                                \
    defined(_LIBCPP_DEPRECATED_ABI_NON_TRIVIAL_ALLOCATOR) || _LIBCPP_ABI_VERSION != 1
#define PIRN_ABI_LAYOUT                                                                                           \
  PIRN_ABI_LETTERS(PIRN_ABI_LIBCXX_VERSION, PIRN_ABI_LIBCXX_A, PIRN_ABI_LIBCXX_B, PIRN_ABI_LIBCXX_C,              \
                   PIRN_ABI_LIBCXX_D, PIRN_ABI_LIBCXX_E, PIRN_ABI_LIBCXX_F, PIRN_ABI_LIBCXX_G, PIRN_ABI_LIBCXX_H, \
                   PIRN_ABI_LIBCXX_I, PIRN_ABI_LIBCXX_J, PIRN_ABI_LIBCXX_K, PIRN_ABI_LIBCXX_L, PIRN_ABI_LIBCXX_M, \
                   PIRN_ABI_LIBCXX_N, PIRN_ABI_LIBCXX_O, PIRN_ABI_LIBCXX_P, PIRN_ABI_LIBCXX_Q, PIRN_ABI_LIBCXX_R, \
                   PIRN_ABI_LIBCXX_S, PIRN_ABI_LIBCXX_T, PIRN_ABI_LIBCXX_U, PIRN_ABI_LIBCXX_V)
#else
#define PIRN_ABI_LAYOUT
#endif
