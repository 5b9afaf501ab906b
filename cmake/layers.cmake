# One target per layer, each on top of the one to its left. A layer exists when it has a header.

set(PIRN_ALL_LAYERS detail context stack coro fiber sync io net http rpc)
set(PIRN_CXX20_LAYERS detail context stack coro)
set(PIRN_LAYERS "")  # existing layers, leftmost first
set(PIRN_LAYERS_LEFT_OUT "")
set(left "")

foreach(layer IN LISTS PIRN_ALL_LAYERS)
  file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/pirn/${layer}/*.hpp")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp")
  if(NOT headers)
    continue()
  endif()
  if(layer STREQUAL "fiber" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    message(STATUS "pirn::fiber and the layers on it are left out: they run on x86-64 only")
    set(PIRN_LAYERS_LEFT_OUT fiber sync io net http rpc)
    break()
  endif()

  set(target pirn_${layer})
  if(sources)
    add_library(${target} ${sources})
    set(scope PUBLIC)
    pirn_warnings(${target})
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(pirn::${layer} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer})
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  if(layer IN_LIST PIRN_CXX20_LAYERS)
    target_compile_features(${target} ${scope} cxx_std_20)
  else()
    target_compile_features(${target} ${scope} cxx_std_23)
    target_link_libraries(${target} ${scope} Threads::Threads)
  endif()
  if(left)
    target_link_libraries(${target} ${scope} ${left})
  elseif(PIRN_KEEP_FP_WORDS)
    target_compile_definitions(${target} ${scope} PIRN_KEEP_FP_WORDS=1)
  endif()
  if(PIRN_PRECOMPILE AND layer STREQUAL "fiber")
    target_precompile_headers(${target} PRIVATE <algorithm> <cstdio> <cstdlib> <optional> <system_error>
                              "${PROJECT_SOURCE_DIR}/src/fiber/runtime_state.hpp")
  elseif(PIRN_PRECOMPILE AND layer STREQUAL "sync")
    target_precompile_headers(${target} PRIVATE <algorithm> <string> <vector> <pirn/fiber/runtime.hpp>
                              <pirn/fiber/scope.hpp>)
  elseif(PIRN_PRECOMPILE AND layer MATCHES "^(io|net|http)$")
    target_precompile_headers(${target} REUSE_FROM pirn_sync)
  endif()
  if(layer STREQUAL "stack")
    # A local array larger than the guard could skip it; with probes it cannot.
    target_compile_options(${target} ${scope} -fstack-clash-protection)
  endif()

  list(APPEND PIRN_LAYERS ${layer})
  set(left ${target})
endforeach()

# For programs that ask for it: this replaces functions of the C library in the whole program.
if(TARGET pirn_fiber)
  add_library(pirn_held_mutexes STATIC "${PROJECT_SOURCE_DIR}/src/fiber/held_mutexes/pthread_mutex.cpp")
  add_library(pirn::held_mutexes ALIAS pirn_held_mutexes)
  set_target_properties(pirn_held_mutexes PROPERTIES EXPORT_NAME held_mutexes)
  target_include_directories(pirn_held_mutexes PRIVATE "${PROJECT_SOURCE_DIR}/src")
  pirn_warnings(pirn_held_mutexes)
  target_link_libraries(pirn_held_mutexes PUBLIC pirn_fiber)
  # Otherwise the linker takes it only if the program itself uses a mutex, and not for those of shared libraries.
  target_link_options(pirn_held_mutexes INTERFACE LINKER:--undefined=pthread_mutex_lock)
endif()

add_library(pirn_pirn INTERFACE)
add_library(pirn::pirn ALIAS pirn_pirn)
set_target_properties(pirn_pirn PROPERTIES EXPORT_NAME pirn)
target_link_libraries(pirn_pirn INTERFACE ${left})

# The flags with which `./dev run FILE.cpp` compiles a single file: one per line, taken from the targets. Left out in
# a larger project, whose generator may have several configurations.
set(libraries "")
foreach(layer IN LISTS PIRN_LAYERS)
  get_target_property(type pirn_${layer} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    list(PREPEND libraries $<TARGET_FILE:pirn_${layer}>)
    list(APPEND PIRN_LIBRARY_TARGETS pirn_${layer})
  endif()
endforeach()
add_custom_target(pirn_libraries DEPENDS ${PIRN_LIBRARY_TARGETS})
function(pirn_run_flags name target libraries)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  file(
    GENERATE
    OUTPUT "${PROJECT_BINARY_DIR}/${name}.ninja"
    CONTENT
      "cxx = ${CMAKE_CXX_COMPILER}
flags = -std=c++23 ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} $<JOIN:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>, > -I${PROJECT_SOURCE_DIR}/include
defines = $<$<BOOL:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>>:-D$<JOIN:$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>, -D>>
libraries = $<JOIN:${libraries}, >
links = ${CMAKE_EXE_LINKER_FLAGS} -pthread
")
endfunction()
pirn_run_flags(run pirn_pirn "${libraries}")
