# pirn_enable_stack_bounds(TARGET [ASSUMPTIONS FILE...] [DEFAULT BYTES] [REPORT FILE]): lets TARGET spawn fibers with
# bounded stacks (pirn/fiber/expert/bounded.hpp). Compiles it with the compiler plugin, which reads the stack use of pirn's own
# functions and of Debian's C and C++ libraries, and ASSUMPTIONS for other functions. DEFAULT is for all functions
# without such an entry. REPORT is a file that gets the bound of each function. Links TARGET to pirn::bounded, with -z
# now. An error where
# there is no plugin for the compiler in use: no stack would have a bound.
function(pirn_enable_stack_bounds target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DEFAULT;REPORT" "ASSUMPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "pirn_enable_stack_bounds(${target}): not understood: ${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  string(REGEX MATCH "^[0-9]+" version "${CMAKE_CXX_COMPILER_VERSION}")
  get_property(plugin GLOBAL PROPERTY pirn_plugin_${version})
  get_property(summaries GLOBAL PROPERTY pirn_stack_summaries)
  get_property(assumptions GLOBAL PROPERTY pirn_stack_assumptions)
  if(NOT summaries OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT plugin)
    message(FATAL_ERROR "pirn_enable_stack_bounds(${target}): there is no compiler plugin for ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, or the build has a sanitizer")
  endif()
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT options MATCHES "-fpass-plugin=")
    pirn_enable_plugin(${target})
  endif()
  set(files "${summaries}" "${assumptions}")
  foreach(file IN LISTS arg_ASSUMPTIONS)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND files "${file}")
  endforeach()
  foreach(file IN LISTS files)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm \"-pirn-stack-assumptions=${file}\">")
  endforeach()
  if(DEFINED arg_DEFAULT)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm -pirn-stack-default=${arg_DEFAULT}>")
  endif()
  if(arg_REPORT)
    get_filename_component(report "${arg_REPORT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-mllvm \"-pirn-stack-report=${report}\">")
  endif()
  # Makes the compiler keep track of lines without debug information.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-Rpass-missed=pirn-stack-bounds>)
  target_link_libraries(${target} PRIVATE pirn::bounded)
  target_link_options(${target} PRIVATE LINKER:-z,now)
  # A linker that optimizes computes the bounds again. It reads its options before it loads the plugin, hence the
  # environment.
  list(JOIN files ":" of_linker)
  set(environment "\"PIRN_STACK_ASSUMPTIONS=${of_linker}\"")
  if(DEFINED arg_DEFAULT)
    string(APPEND environment " PIRN_STACK_DEFAULT=${arg_DEFAULT}")
  endif()
  get_property(launcher TARGET ${target} PROPERTY RULE_LAUNCH_LINK)
  set_property(TARGET ${target} PROPERTY RULE_LAUNCH_LINK "\"${CMAKE_COMMAND}\" -E env ${environment} ${launcher}")
  # Compiled after the summaries were written, and again after they change.
  set(depends ${files})
  list(REMOVE_ITEM depends "${summaries}")
  if(TARGET pirn_stack_summaries)  # of this build; an installed pirn brings its own
    add_dependencies(${target} pirn_stack_summaries)
    list(APPEND depends "${summaries}.stamp")
  endif()
  pirn_compile_after(${target} ${depends})
endfunction()
