# The API of usched.h, the ring programs on rr.h and ll.h, in the form of this build and in all other forms, the CPUs,
# preemption and end of both.

compat_test(compat_usched_api usched_api.c shared)
compat_test(compat_usched_api_static usched_api.c static)
compat_test(compat_usched_api_cxx usched_api.c shared CXX)
compat_test(compat_usched_locals usched_locals.c shared)
compat_test(compat_usched_preempt usched_preempt.c shared)
compat_test(compat_usched_preempt_static usched_preempt.c static)

if(NOT PIRN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_CXX_FLAGS MATCHES "libc\\+\\+")
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_test(NAME compat_usched_matrix
           COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/usched_matrix.py" $<TARGET_FILE:pirn_compat>
                   $<TARGET_FILE:pirn_compat_archive>)
  pirn_test(compat_usched_matrix compat)
  set_tests_properties(compat_usched_matrix PROPERTIES PROCESSORS 2 COST 2 TIMEOUT 900 SKIP_RETURN_CODE 77)
  add_test(NAME compat_usched_sanitized
           COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tests/coro/stack_swap_sanitized_test.py"
                   tests/compat/usched_api.c src/compat/usched.cpp src/compat/usched_locals.cpp)
  pirn_test(compat_usched_sanitized compat)
  set_tests_properties(compat_usched_sanitized PROPERTIES PROCESSORS 2 COST 2 SKIP_RETURN_CODE 77)
endif()
foreach(form IN ITEMS RR SINGLE_THREAD LOCAL)
  string(TOLOWER "compat_usched_ring_${form}" name)
  compat_program(${name} usched_ring.c shared OPTIONS -D${form} -std=gnu99)
  foreach(natives IN ITEMS 1 2)
    if(NOT form STREQUAL "SINGLE_THREAD" OR natives EQUAL 1)
      add_test(NAME ${name}_${natives} COMMAND ${name} 8 20 100 100 ${natives})
      pirn_test(${name}_${natives} compat)
    endif()
  endforeach()
endforeach()
foreach(form IN ITEMS RR SINGLE_THREAD LOCAL)
  string(TOLOWER "compat_usched_natives_${form}" name)
  compat_test(${name} usched_natives.c shared OPTIONS -D${form} -std=gnu99)
endforeach()
foreach(form IN ITEMS RR LOCAL)
  string(TOLOWER "compat_usched_fini_${form}" name)
  compat_test(${name} usched_fini.c shared OPTIONS -D${form} -std=gnu99)
endforeach()
if(NOT PIRN_SANITIZE)
  # A library that cannot announce switches to the program's sanitizer says so.
  compat_program(compat_usched_untold usched_ring.c shared OPTIONS -fsanitize=address -std=gnu99)
  add_test(NAME compat_usched_untold COMMAND sh -c "\"$0\" 2 1 1 0 1 2>&1 | grep 'build the library with it too'"
                                             $<TARGET_FILE:compat_usched_untold>)
  pirn_test(compat_usched_untold compat)
endif()

# ThreadSanitizer ends a process in which pthread_exit is called on another stack.
if(NOT PIRN_SANITIZE MATCHES "thread")
  foreach(form IN ITEMS shared static)
    compat_test(compat_usched_thread_end_${form} usched_thread_end.c ${form} OPTIONS -fexceptions -std=gnu99)
  endforeach()
  foreach(form IN ITEMS RR SINGLE_THREAD LOCAL)
    string(TOLOWER "compat_usched_native_end_${form}" name)
    compat_test(${name} usched_native_end.c shared OPTIONS -D${form} -fexceptions -std=gnu99)
  endforeach()
  if(NOT PIRN_SANITIZE)
    compat_test(compat_usched_native_end_no_tables usched_native_end.c shared
                OPTIONS -DNO_TABLES -fno-asynchronous-unwind-tables -fno-exceptions -std=gnu99)
  endif()
endif()
