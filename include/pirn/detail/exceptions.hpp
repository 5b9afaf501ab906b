// Says that exceptions are needed, before a compiler says in hundreds of places that it cannot throw. Included by what
// throws, or ends what is suspended by unwinding its stack.
#pragma once

#if !defined(__cpp_exceptions)
#error \
    "pirn: C++ code on pirn needs exceptions: build it without -fno-exceptions (the C API, pirn/pirn.h, does without)"
#endif
