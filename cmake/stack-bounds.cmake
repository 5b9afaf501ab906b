# The input of the compiler plugin for bounds of fibers' stacks: summaries of the functions of pirn that a fiber may
# call on a small stack, written as the libraries are compiled.

set(PIRN_STACK_SUMMARIES "${PROJECT_BINARY_DIR}/compiler/stack")
set(PIRN_STACK_ASSUMPTIONS "${PROJECT_SOURCE_DIR}/compiler/debian-12-amd64.stack.txt")
include("${CMAKE_CURRENT_LIST_DIR}/pirn-enable-stack-bounds.cmake")
string(REGEX MATCH "^[0-9]+" version "${CMAKE_CXX_COMPILER_VERSION}")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT DEFINED PIRN_PLUGIN_FILE_${version} OR PIRN_SANITIZE)
  return()
endif()
set(plugin "${PIRN_PLUGIN_FILE_${version}}")
set(PIRN_STACK_BOUNDS ON)
# A property of the build, not of a folder: pirn may be in a folder of a larger project.
set_property(GLOBAL PROPERTY pirn_stack_summaries "${PIRN_STACK_SUMMARIES}")
set_property(GLOBAL PROPERTY pirn_stack_assumptions "${PIRN_STACK_ASSUMPTIONS}")
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/sync/*.cpp")
foreach(name detail/platform stack/small_stacks fiber/bounded/bounded fiber/bounded/start_checks fiber/current_agent fiber/fiber
        fiber/idle_workers fiber/schedule fiber/small fiber/stealing
        fiber/suspend fiber/this_fiber fiber/thread_agent fiber/worker fiber/wait_queue)
  list(APPEND sources "${PROJECT_SOURCE_DIR}/src/${name}.cpp")
endforeach()
# Not where they are compiled again for another library, pirn::sim for instance.
set(here $<IN_LIST:$<TARGET_PROPERTY:NAME>,pirn_detail$<SEMICOLON>pirn_stack$<SEMICOLON>pirn_fiber$<SEMICOLON>pirn_bounded$<SEMICOLON>pirn_sync>)
foreach(option -fplugin=${plugin} -fpass-plugin=${plugin} -mllvm "-pirn-stack-summaries=${PIRN_STACK_SUMMARIES}" -mllvm
        -pirn-propagate=false)
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS "$<${here}:${option}>")
endforeach()
set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${plugin}")

set(libraries pirn_detail pirn_stack pirn_fiber pirn_bounded pirn_sync)
add_custom_command(OUTPUT "${PIRN_STACK_SUMMARIES}.stamp" COMMAND ${CMAKE_COMMAND} -E touch "${PIRN_STACK_SUMMARIES}.stamp"
                   DEPENDS ${libraries})
add_custom_target(pirn_stack_summaries DEPENDS "${PIRN_STACK_SUMMARIES}.stamp")
