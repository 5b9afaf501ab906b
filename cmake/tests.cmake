# tests/<folder>/<name>_test.cpp is the program and the ctest entry <folder>_<name>_test, labelled <folder>. A folder
# named like a layer links only that layer, so that a test cannot depend on the layers above; others link all. The
# programs of io, net and http run twice: <folder>_<name>_test_uring has io_uring as its engine.
# <name>_slow_test.cpp is also labelled slow and runs only in `./dev test --all`, with the machine for itself, for half
# an hour. It needs PIRN_SLOW_TESTS, which the preset dev sets. tests/<folder>/CMakeLists.txt, where there is one,
# registers tests of other shapes.

set(googletest_dir /usr/src/googletest/googletest CACHE PATH "GoogleTest's sources, built with the flags of the tree")
if(NOT EXISTS "${googletest_dir}/src/gtest-all.cc")
  message(FATAL_ERROR "no GoogleTest sources in ${googletest_dir} (Debian: googletest); or set PIRN_TESTS=OFF")
endif()
add_library(pirn_gtest STATIC EXCLUDE_FROM_ALL "${googletest_dir}/src/gtest-all.cc" "${googletest_dir}/src/gtest_main.cc")
target_include_directories(pirn_gtest SYSTEM PUBLIC "${googletest_dir}/include" PRIVATE "${googletest_dir}")
target_compile_features(pirn_gtest PRIVATE cxx_std_20)
target_compile_options(pirn_gtest PRIVATE -w -O0 -g0)  # a sixth of the time to build; no test waits for it
target_link_libraries(pirn_gtest PUBLIC Threads::Threads)

set(PIRN_TESTS_LEFT_OUT "" CACHE STRING "Folders of tests that are not built, as a list")
set(PIRN_TEST_FLAGS "" CACHE STRING "What the tests' own files are compiled with in the end, as a list")
set(PIRN_FIBER_TEST_FLAGS "${PIRN_TEST_FLAGS}" CACHE STRING "The same for the tests of fibers and of the layers on them")

# pirn_test_options(TARGET BASE) gives TARGET the warnings and the flags of tests on the precompiled headers of BASE.
function(pirn_test_options target base)
  pirn_warnings(${target})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # With -O2 it takes a sum of two std::strings for an access out of bounds (GCC bug 105651).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                             -Wno-stringop-overread)
  endif()
  if(base STREQUAL "fiber")
    target_compile_options(${target} PRIVATE ${PIRN_FIBER_TEST_FLAGS})
  else()
    target_compile_options(${target} PRIVATE ${PIRN_TEST_FLAGS})
  endif()
endfunction()

# The headers that nearly every test includes, compiled once for each set of flags that the layers require.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_headers.cpp" CONTENT "int main() {}\n")
foreach(layer context stack fiber sim)
  if(TARGET pirn_${layer})
    add_executable(pirn_${layer}_test_headers EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(pirn_${layer}_test_headers PRIVATE pirn::${layer} pirn_gtest)
    set(of_layer "")
    if(layer MATCHES "^(fiber|sim)$")
      set(of_layer <atomic> <pirn/fiber/runtime.hpp> <pirn/fiber/scope.hpp>)
    endif()
    target_precompile_headers(
      pirn_${layer}_test_headers
      PRIVATE <gtest/gtest.h> <algorithm> <chrono> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <exception>
              <functional> <memory> <mutex> <new> <optional> <random> <stdexcept> <string> <string_view>
              <system_error> <thread> <tuple> <type_traits> <utility> <vector> ${of_layer})
    pirn_test_options(pirn_${layer}_test_headers ${layer})
    if(PIRN_PRECOMPILE AND NOT PIRN_USE_PLUGIN AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      # Their inline functions too, which takes a third of the time off each test. The source is what the first of the
      # two targets writes, so the options that have no meaning for it are no news.
      target_compile_options(pirn_${layer}_test_headers PRIVATE -fpch-codegen)
      set(headers "${PROJECT_BINARY_DIR}/CMakeFiles/pirn_${layer}_test_headers.dir/cmake_pch.hxx.pch")
      set_source_files_properties("${headers}" PROPERTIES GENERATED ON LANGUAGE CXX OBJECT_DEPENDS "${headers}")
      add_library(pirn_${layer}_test_inlines STATIC EXCLUDE_FROM_ALL "${headers}")
      target_link_libraries(pirn_${layer}_test_inlines PRIVATE pirn::${layer} pirn_gtest)
      pirn_test_options(pirn_${layer}_test_inlines ${layer})
      target_compile_options(pirn_${layer}_test_inlines PRIVATE -xnone -Wno-unused-command-line-argument)
    endif()
  endif()
endforeach()

set(PIRN_TEST_TIMEOUT 120)
if(PIRN_SANITIZE)
  set(PIRN_TEST_TIMEOUT 300)
endif()

# pirn_test(NAME LABELS...) gives a ctest entry the labels, time limit and environment that all entries have.
function(pirn_test name)
  set_tests_properties(
    ${name}
    PROPERTIES LABELS "${ARGN}" TIMEOUT ${PIRN_TEST_TIMEOUT} ENVIRONMENT
               "UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
endfunction()

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*/*_test.cpp")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  cmake_path(GET source PARENT_PATH parent)
  cmake_path(GET parent FILENAME folder)
  if(folder IN_LIST PIRN_TESTS_LEFT_OUT)
    continue()
  elseif(folder IN_LIST PIRN_LAYERS)
    set(layer ${folder})
  elseif(folder IN_LIST PIRN_LAYERS_LEFT_OUT)
    continue()
  elseif(folder STREQUAL "sim")
    if(NOT TARGET pirn_sim OR NOT PIRN_SLOW_TESTS)
      continue()  # pirn's own sources behave the same in an exploration in every build
    endif()
    set(layer sim)
  elseif(folder STREQUAL "compat" AND NOT TARGET pirn_compat)
    continue()
  else()
    set(layer pirn)
  endif()
  file(STRINGS "${source}" wants_boost REGEX "^ *# *include *[<\"]boost/")
  if(wants_boost AND NOT Boost_FOUND)
    message(STATUS "tests/${folder}/${stem}.cpp is left out: it needs the headers of Boost 1.81 or newer")
    continue()
  endif()

  set(wants_resolver "")
  if(NOT layer STREQUAL "sim")  # which has its own
    file(STRINGS "${source}" wants_resolver REGEX "^ *# *include *[<\"]pirn/net/resolver.hpp")
  endif()
  if(wants_resolver AND NOT TARGET pirn_resolver)
    message(STATUS "tests/${folder}/${stem}.cpp is left out: it needs pirn::resolver")
    continue()
  endif()

  if(stem MATCHES "_slow_test$" AND NOT PIRN_SLOW_TESTS)
    continue()
  endif()
  set(name ${folder}_${stem})
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE pirn::${layer} pirn_gtest)
  if(layer MATCHES "^(sync|pirn)$" AND TARGET pirn_biased_mutex)
    target_link_libraries(${name} PRIVATE pirn::biased_mutex)
  endif()
  if(wants_resolver)
    target_link_libraries(${name} PRIVATE pirn::resolver)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  set(base ${layer})
  if(layer STREQUAL "sim")
    set(base sim)
  elseif(layer STREQUAL "coro")
    set(base stack)
  elseif(NOT layer MATCHES "^(detail|context|stack)$")
    set(base fiber)
  endif()
  pirn_test_options(${name} ${base})
  if(PIRN_SANITIZE MATCHES "address" AND name MATCHES "^(context_sanitizer|coro_stack_swap|fiber_swap_blocks)_")
    # Without optimization copies of a pointer lie on the real stack too, where LeakSanitizer finds them, and the
    # remains of alloca's red zones on a swapped stack are reported as errors.
    target_compile_options(${name} PRIVATE -O1)
  elseif(TARGET pirn_${base}_test_headers)
    target_precompile_headers(${name} REUSE_FROM pirn_${base}_test_headers)
    if(TARGET pirn_${base}_test_inlines)
      target_link_libraries(${name} PRIVATE pirn_${base}_test_inlines)
    endif()
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(PIRN_USE_PLUGIN)
    pirn_enable_plugin(${name} REPORT "${PROJECT_BINARY_DIR}/propagation")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(stem MATCHES "_slow_test$")
    pirn_test(${name} ${folder} slow)
    set_tests_properties(${name} PROPERTIES TIMEOUT 1800 RUN_SERIAL ON)
  else()
    pirn_test(${name} ${folder})
    if(layer MATCHES "^(io|net|http)$" OR name MATCHES "^sim_(acceptor|http|names|network|sockets)_test$")
      # The same program with the other engine, where the kernel allows it.
      add_test(NAME ${name}_uring COMMAND ${name})
      pirn_test(${name}_uring ${folder})
      set_property(TEST ${name}_uring APPEND PROPERTY ENVIRONMENT PIRN_ENGINE=uring)
    endif()
    if(name MATCHES "^(io_operation|net_lend|net_tcp_stream)_test$")
      # And with the features that Linux 5.15 has.
      add_test(NAME ${name}_old_uring COMMAND ${name})
      pirn_test(${name}_old_uring ${folder})
      set_property(TEST ${name}_old_uring APPEND PROPERTY ENVIRONMENT PIRN_ENGINE=uring
                   PIRN_URING_WITHOUT=submit_all,skip_success,coop_taskrun,single_issuer,no_sqarray,registered_ring,no_iowait,multishot_receive)
    endif()
  endif()
endforeach()

file(GLOB lists CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*/CMakeLists.txt")
foreach(list IN LISTS lists)
  cmake_path(GET list PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  if(NOT name IN_LIST PIRN_TESTS_LEFT_OUT)
    add_subdirectory("${folder}")
  endif()
endforeach()
