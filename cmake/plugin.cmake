# pirn-plugin.so, the compiler plugin, for each LLVM with installed headers; and its activation for a target.

option(PIRN_PLUGIN "Build the compiler plugin for each of PIRN_PLUGIN_LLVM whose headers are here" ${PROJECT_IS_TOP_LEVEL})
set(PIRN_PLUGIN_LLVM "22;19" CACHE STRING "Versions of LLVM to build the compiler plugin for")
include("${CMAKE_CURRENT_LIST_DIR}/pirn-enable-plugin.cmake")

option(PIRN_USE_PLUGIN "Compile the layers and their tests with the plugin" OFF)

set(PIRN_PLUGIN_VERSIONS "")  # those that are built
if(NOT PIRN_PLUGIN)
  return()
endif()
file(GLOB plugin_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/compiler/*.cpp")
foreach(version IN LISTS PIRN_PLUGIN_LLVM)
  find_program(PIRN_LLVM_CONFIG_${version} NAMES llvm-config-${version})
  if(NOT PIRN_LLVM_CONFIG_${version})
    continue()
  endif()
  execute_process(COMMAND ${PIRN_LLVM_CONFIG_${version}} --includedir OUTPUT_VARIABLE headers OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT EXISTS "${headers}/llvm/IR/PassManager.h")
    continue()
  endif()
  list(APPEND PIRN_PLUGIN_VERSIONS ${version})
  # The compiler or linker that loads it contains the referenced parts of LLVM.
  add_library(pirn_plugin_${version} MODULE EXCLUDE_FROM_ALL ${plugin_sources})
  target_include_directories(pirn_plugin_${version} SYSTEM PRIVATE "${headers}")
  target_compile_features(pirn_plugin_${version} PRIVATE cxx_std_20)
  target_compile_definitions(pirn_plugin_${version} PRIVATE _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS
                                                            __STDC_LIMIT_MACROS)
  target_compile_options(pirn_plugin_${version} PRIVATE -fno-rtti -fno-exceptions -fvisibility=hidden -g0 -O1)
  # Reduces the build time to a third: nearly all of it goes into these headers.
  target_precompile_headers(
    pirn_plugin_${version}
    PRIVATE <memory> <string> <vector> <llvm/ADT/DenseMap.h> <llvm/Analysis/BlockFrequencyInfo.h>
            <llvm/Demangle/Demangle.h> <llvm/IR/IRBuilder.h> <llvm/IR/InstIterator.h> <llvm/IR/IntrinsicInst.h>
            <llvm/IR/Module.h> <llvm/Passes/PassBuilder.h> <llvm/Support/CommandLine.h>)
  # Six files at a time: most of the time goes into templates that each of them would instantiate.
  set_target_properties(pirn_plugin_${version} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  pirn_warnings(pirn_plugin_${version})
  set_target_properties(
    pirn_plugin_${version}
    PROPERTIES PREFIX "" OUTPUT_NAME pirn-plugin LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/compiler/llvm-${version}")
  # A linker that loads it brings no headers along, so it is installed by version. Where it is not built it is omitted.
  if(PIRN_INSTALL)
    install(PROGRAMS "${PROJECT_BINARY_DIR}/compiler/llvm-${version}/pirn-plugin.so"
            DESTINATION "${CMAKE_INSTALL_LIBDIR}/pirn/llvm-${version}" OPTIONAL)
  endif()
  set(PIRN_PLUGIN_FILE_${version} "${PROJECT_BINARY_DIR}/compiler/llvm-${version}/pirn-plugin.so")
  set_property(GLOBAL PROPERTY pirn_plugin_${version} "${PIRN_PLUGIN_FILE_${version}}")
endforeach()

# Targets compiled with it are listed here, at the end, and tests in cmake/tests.cmake.
if(PIRN_USE_PLUGIN)
  foreach(target IN LISTS PIRN_LIBRARY_TARGETS)
    pirn_enable_plugin(${target} REPORT "${PROJECT_BINARY_DIR}/propagation")
  endforeach()
endif()
