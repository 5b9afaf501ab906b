# The C API: pirn::c and pirn::c_static.

# The C compiler that goes with the C++ compiler, if the name of that shows it; else the one that CMake finds.
if(NOT CMAKE_C_COMPILER)
  get_filename_component(cxx_name "${CMAKE_CXX_COMPILER}" NAME)
  string(REGEX REPLACE "clang\\+\\+" "clang" c_name "${cxx_name}")
  string(REGEX REPLACE "g\\+\\+" "gcc" c_name "${c_name}")
  if(NOT c_name STREQUAL cxx_name)
    get_filename_component(cxx_folder "${CMAKE_CXX_COMPILER}" DIRECTORY)
    find_program(c_compiler_found "${c_name}" HINTS "${cxx_folder}")
    if(c_compiler_found)
      set(CMAKE_C_COMPILER "${c_compiler_found}")
    endif()
  endif()
endif()
enable_language(C)

add_library(pirn_c_objects OBJECT "${PROJECT_SOURCE_DIR}/src/coro/c_api/c_api.cpp"
                                  "${PROJECT_SOURCE_DIR}/src/coro/c_api/c_stack.cpp")
target_include_directories(pirn_c_objects PRIVATE "${PROJECT_SOURCE_DIR}/src")
pirn_c_library(c "${PROJECT_SOURCE_DIR}/src/coro/c_api/c_api.map")
foreach(name IN ITEMS pirn_c pirn_c_static)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
