# pirn_enable_stack_bounds(TARGET [ASSUMPTIONS FILE...] [DEFAULT BYTES] [REPORT FILE]): lets TARGET spawn fibers with
# bounded stacks (pirn/fiber/bounded.hpp): compiles it with the compiler plugin, which reads what pirn's own functions
# and those of Debian's C and C++ libraries use, and what ASSUMPTIONS say of others; DEFAULT is for all that nobody has
# said anything of. REPORT is a file that gets the bound of each function. Links it with -z now.
# An error where there is no plugin for the compiler in use: no stack would have a bound.
function(pirn_enable_stack_bounds target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEFAULT;REPORT" "ASSUMPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "pirn_enable_stack_bounds(${target}): not understood: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  string(REGEX MATCH "^[0-9]+" version "${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT PIRN_STACK_BOUNDS)
    message(FATAL_ERROR "pirn_enable_stack_bounds(${target}): there is no compiler plugin for ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, or the build has a sanitizer")
  endif()
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT options MATCHES "-fpass-plugin=")
    pirn_enable_plugin(${target})
  endif()
  set(files "${PIRN_STACK_SUMMARIES}" "${PIRN_STACK_ASSUMPTIONS}")
  foreach(file IN LISTS arg_ASSUMPTIONS)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND files "${file}")
  endforeach()
  foreach(file IN LISTS files)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm -pirn-stack-assumptions=${file}>")
  endforeach()
  if(DEFINED arg_DEFAULT)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm -pirn-stack-default=${arg_DEFAULT}>")
  endif()
  if(arg_REPORT)
    get_filename_component(report "${arg_REPORT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm -pirn-stack-report=${report}>")
  endif()
  # Has the compiler keep track of lines without debug information.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-Rpass-missed=pirn-stack-bounds>)
  target_link_options(${target} PRIVATE LINKER:-z,now)
  # Compiled after the summaries were written, and again when they were.
  add_dependencies(${target} pirn_stack_summaries)
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND
               PROPERTY OBJECT_DEPENDS "${PIRN_STACK_ASSUMPTIONS}" "${PIRN_STACK_SUMMARIES}.stamp" ${arg_ASSUMPTIONS})
endfunction()
