# The C API: pirn::c (shared, symbols versioned) and pirn::c_static. Linked as C: a program of C needs no C++ runtime.

# The C compiler that goes with the other one, where its name tells; else the one that CMake finds.
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

add_library(pirn_c_objects OBJECT "${PROJECT_SOURCE_DIR}/src/coro/c_api/c_api.cpp")
target_link_libraries(pirn_c_objects PRIVATE pirn::context)
target_compile_options(pirn_c_objects PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics
                                              -fasynchronous-unwind-tables -fstack-clash-protection -fvisibility=hidden)
pirn_warnings(pirn_c_objects)

add_library(pirn_c SHARED $<TARGET_OBJECTS:pirn_c_objects>)
set(version_script "${PROJECT_SOURCE_DIR}/src/coro/c_api/c_api.map")
target_link_options(pirn_c PRIVATE "LINKER:--version-script=${version_script}" LINKER:--as-needed)
set_target_properties(pirn_c PROPERTIES LINK_DEPENDS "${version_script}" VERSION ${PROJECT_VERSION}
                                        SOVERSION ${PROJECT_VERSION_MAJOR})

# CMake links a C++ runtime into whatever uses a static library with C++ in it, which this one does not need: so users get
# the file instead of the target.
add_library(pirn_c_archive STATIC $<TARGET_OBJECTS:pirn_c_objects>)
set_target_properties(pirn_c_archive PROPERTIES OUTPUT_NAME pirn_c)
add_library(pirn_c_static INTERFACE)
add_dependencies(pirn_c_static pirn_c_archive)
target_link_libraries(
  pirn_c_static
  INTERFACE $<BUILD_INTERFACE:$<TARGET_FILE:pirn_c_archive>>
            $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}pirn_c${CMAKE_STATIC_LIBRARY_SUFFIX}>)

set_target_properties(pirn_c PROPERTIES LINKER_LANGUAGE C)
foreach(name IN ITEMS c c_static)
  add_library(pirn::${name} ALIAS pirn_${name})
  set_target_properties(pirn_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(pirn_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

install(TARGETS pirn_c pirn_c_static EXPORT pirn-targets)
install(TARGETS pirn_c_archive)
