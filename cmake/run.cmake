# How `./dev run FILE.cpp` compiles a single file: a file for ninja, with the flags of the targets, that lacks only the
# program itself. Left out in a larger project, whose generator may have several configurations.
set(libraries "")
set(outside "")  # libraries of others
foreach(layer IN LISTS PIRN_LAYERS)
  get_target_property(type pirn_${layer} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    list(PREPEND libraries $<TARGET_FILE:pirn_${layer}>)
    list(APPEND PIRN_LIBRARY_TARGETS pirn_${layer})
  endif()
endforeach()
if(TARGET pirn_biased_mutex)  # changes nothing in a program that does not use it
  list(PREPEND libraries $<TARGET_FILE:pirn_biased_mutex>)
  list(APPEND PIRN_LIBRARY_TARGETS pirn_biased_mutex)
endif()
if(TARGET pirn_resolver)
  list(PREPEND libraries $<TARGET_FILE:pirn_resolver>)
  list(APPEND outside "${PIRN_CARES_LIBRARY}")
  list(APPEND PIRN_LIBRARY_TARGETS pirn_resolver)
endif()
add_custom_target(pirn_libraries DEPENDS ${PIRN_LIBRARY_TARGETS})
# pirn_run_flags(NAME TARGET LIBRARIES [library of others]...)
function(pirn_run_flags name target libraries)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  # Outside of the generator expression, to which the commas would mean something.
  list(JOIN ARGN " " outside)
  file(
    GENERATE
    OUTPUT "${PROJECT_BINARY_DIR}/${name}.ninja"
    CONTENT
      "cxx = ${CMAKE_CXX_COMPILER}
flags = -std=c++23 ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} $<JOIN:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>, > -I${PROJECT_SOURCE_DIR}/include
defines = $<$<BOOL:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>>:-D$<JOIN:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>, -D>>
libraries = $<JOIN:${libraries}, >
outside = -Wl,--as-needed ${outside} -Wl,--no-as-needed
links = ${CMAKE_EXE_LINKER_FLAGS} -pthread
rule program
  command = $cxx $flags $defines -MMD -MF $out.d $in $libraries $outside $links -o $out
  depfile = $out.d
")
endfunction()
pirn_run_flags(run pirn_pirn "${libraries}" ${outside})
