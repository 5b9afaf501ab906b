# Libraries for C programs, which need no C++ runtime to link them: pirn::<name> (shared, symbols versioned) and
# pirn::<name>_static.

# pirn_c_library(NAME MAP [NAMELINK_SKIP] LIBRARIES...): made of the objects of pirn_<name>_objects. Users link
# LIBRARIES too. With NAMELINK_SKIP the caller installs the file that -lpirn_<name> finds.
function(pirn_c_library name map)
  cmake_parse_arguments(with "NAMELINK_SKIP" "" "" ${ARGN})
  set(ARGN ${with_UNPARSED_ARGUMENTS})
  set(namelink "")
  if(with_NAMELINK_SKIP)
    set(namelink LIBRARY NAMELINK_SKIP)
  endif()
  target_link_libraries(pirn_${name}_objects PRIVATE pirn::context ${ARGN})
  target_compile_options(pirn_${name}_objects PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics
                                                      -fasynchronous-unwind-tables -fstack-clash-protection
                                                      -fvisibility=hidden)
  pirn_warnings(pirn_${name}_objects)

  add_library(pirn_${name} SHARED $<TARGET_OBJECTS:pirn_${name}_objects>)
  target_link_options(pirn_${name} PRIVATE "LINKER:--version-script=${map}" LINKER:--as-needed)
  set_target_properties(pirn_${name} PROPERTIES LINK_DEPENDS "${map}" VERSION ${PROJECT_VERSION}
                                                SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C)

  # CMake links a C++ runtime into every user of a static library with C++ in it. This library does not need one, so
  # users get the file instead of the target.
  add_library(pirn_${name}_archive STATIC $<TARGET_OBJECTS:pirn_${name}_objects>)
  set_target_properties(pirn_${name}_archive PROPERTIES OUTPUT_NAME pirn_${name})
  add_library(pirn_${name}_static INTERFACE)
  add_dependencies(pirn_${name}_static pirn_${name}_archive)
  set(file "${CMAKE_STATIC_LIBRARY_PREFIX}pirn_${name}${CMAKE_STATIC_LIBRARY_SUFFIX}")
  target_link_libraries(
    pirn_${name}_static
    INTERFACE $<BUILD_INTERFACE:$<TARGET_FILE:pirn_${name}_archive>>
              $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${file}> ${ARGN})

  foreach(kind IN ITEMS ${name} ${name}_static)
    add_library(pirn::${kind} ALIAS pirn_${kind})
    set_target_properties(pirn_${kind} PROPERTIES EXPORT_NAME ${kind})
  endforeach()
  if(PIRN_INSTALL)
    install(TARGETS pirn_${name} pirn_${name}_static EXPORT pirn-targets ${namelink})
    install(TARGETS pirn_${name}_archive)
  endif()
endfunction()
