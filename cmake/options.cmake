# The choices of a build. Every choice that changes the binary interface is also encoded in PIRN_ABI
# (include/pirn/detail/abi.hpp), so that a program and a library which disagree do not link.

option(PIRN_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PIRN_SLOW_TESTS "Build the tests that take minutes too" OFF)
option(PIRN_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(PIRN_EXPLORE "Build pirn::sim, for programs that explore interleavings" ON)
option(PIRN_BENCH "Build what bench/run.py runs" OFF)
option(PIRN_INSTALL "Install the libraries: with a larger project, where pirn is part of one" ${PROJECT_IS_TOP_LEVEL})
option(PIRN_PRECOMPILE "Precompile what the sources of fiber and of what lies on it include: faster to build from scratch" OFF)
option(PIRN_KEEP_FP_WORDS "Give every context its own mxcsr and x87 control word" OFF)
set(PIRN_SANITIZE "" CACHE STRING "Sanitizers, as after -fsanitize=: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# A larger project compiles only the libraries that its targets link.
if(NOT PROJECT_IS_TOP_LEVEL AND NOT PIRN_INSTALL)
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY EXCLUDE_FROM_ALL ON)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(PIRN_TESTS OR PIRN_EXAMPLES OR PIRN_BENCH)
  find_package(Boost 1.81 QUIET)
endif()

if(PIRN_SANITIZE)
  add_compile_options(-fsanitize=${PIRN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PIRN_SANITIZE})
  if(PIRN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Halves the build time: the checks of AddressSanitizer as calls, without its additional checks of null pointers.
    add_compile_options("SHELL:-mllvm -asan-instrumentation-with-call-threshold=0" -fno-sanitize=null,vptr,object-size)
  endif()
endif()

# The warnings for pirn's own code; CMAKE_COMPILE_WARNING_AS_ERROR (set by the presets) makes them errors.
function(pirn_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                           -Wnon-virtual-dtor -Wextra-semi -Wimplicit-fallthrough)
endfunction()
