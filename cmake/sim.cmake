# pirn::sim: all layers up to http in one library, built so that an exploration decides about every atomic operation. A
# program links it in place of pirn::pirn.

if(NOT PIRN_EXPLORE OR NOT TARGET pirn_sync OR PIRN_SANITIZE)
  return()  # an exploration runs all threads on one, which no sanitizer could follow
endif()
set(sources "")
set(of_sim ${PIRN_LAYERS} sim)
list(REMOVE_ITEM of_sim detail)  # src/sim has the other side of that seam
foreach(layer IN LISTS of_sim)
  file(GLOB of_layer CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp")
  list(APPEND sources ${of_layer})
endforeach()
file(GLOB of_biased_mutex CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/sync/biased_mutex/*.cpp")
list(APPEND sources ${of_biased_mutex} "${PROJECT_SOURCE_DIR}/src/net/resolver/resolver.cpp")
list(FILTER sources EXCLUDE REGEX "/(direct_io|epoll_engine|program_start|provided_buffers|uring|uring_engine)\\.cpp$")  # src/sim has another one
list(FILTER sources EXCLUDE REGEX "/signal_set\\.cpp$")  # the kernel owns signals

add_library(pirn_sim ${sources})
add_library(pirn::sim ALIAS pirn_sim)
set_target_properties(pirn_sim PROPERTIES EXPORT_NAME sim VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
pirn_warnings(pirn_sim)
target_compile_features(pirn_sim PUBLIC cxx_std_23)
target_compile_definitions(pirn_sim PUBLIC PIRN_SIM=1)
target_compile_options(pirn_sim PUBLIC -fstack-clash-protection)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Reduces the build time to a quarter; traces need only lines. With clang's lines alone they miss a caller.
  target_compile_options(pirn_sim PRIVATE $<$<CONFIG:RelWithDebInfo>:-g1>)
endif()
target_include_directories(
  pirn_sim
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(pirn_sim PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
if(PIRN_KEEP_FP_WORDS)
  target_compile_definitions(pirn_sim PUBLIC PIRN_KEEP_FP_WORDS=1)
endif()
target_precompile_headers(pirn_sim PRIVATE <algorithm> <cstdio> <cstdlib> <optional> <string> <system_error> <vector>
                          "${PROJECT_SOURCE_DIR}/src/fiber/runtime_state.hpp" <pirn/fiber/scope.hpp>)
pirn_run_flags(run_sim pirn_sim $<TARGET_FILE:pirn_sim>)

if(PIRN_EXAMPLES)
  file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/sim/*.cpp")
  foreach(source IN LISTS examples)
    cmake_path(GET source STEM stem)
    add_executable(example_sim_${stem} "${source}")
    target_link_libraries(example_sim_${stem} PRIVATE pirn::sim)
    pirn_warnings(example_sim_${stem})
    set_target_properties(example_sim_${stem} PROPERTIES OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY
                                                                             "${PROJECT_BINARY_DIR}/examples/sim")
  endforeach()
endif()
