// Reports once that exceptions are needed, before a compiler reports in hundreds of places that it cannot throw.
// Included by each file that throws, or that ends a suspended context by unwinding its stack.
#pragma once

#if !defined(__cpp_exceptions)
#error \
    "pirn: C++ code with pirn needs exceptions: build it without -fno-exceptions (the C API, pirn/pirn.h, needs none)"
#endif
