# The drop-in headers' library: pirn::compat (shared, symbols versioned) and pirn::compat_static, which serve programs
# written for libaco and usched with compat/*.h. Linked as C, as pirn::c is, whose file says why.

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/compat/*.cpp")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|i[3-6]86|aarch64|arm64)$")
  list(FILTER sources EXCLUDE REGEX "/aco\\.cpp$")
endif()
if(NOT sources)
  return()
endif()
add_library(pirn_compat_objects OBJECT ${sources})
target_link_libraries(pirn_compat_objects PRIVATE pirn::context Threads::Threads)
target_include_directories(pirn_compat_objects PRIVATE "${PROJECT_SOURCE_DIR}/compat" "${PROJECT_SOURCE_DIR}/src")
target_compile_options(pirn_compat_objects PRIVATE -fno-exceptions -fno-rtti -fno-threadsafe-statics
                                                   -fasynchronous-unwind-tables -fstack-clash-protection
                                                   -fvisibility=hidden -fno-plt)
# -fno-plt: the loader would look functions up on whatever stack they are called on first, and needs 3 KiB for it.
pirn_warnings(pirn_compat_objects)

add_library(pirn_compat SHARED $<TARGET_OBJECTS:pirn_compat_objects>)
set(version_script "${PROJECT_SOURCE_DIR}/src/compat/compat.map")
target_link_options(pirn_compat PRIVATE "LINKER:--version-script=${version_script}" LINKER:--as-needed)
set_target_properties(pirn_compat PROPERTIES LINK_DEPENDS "${version_script}" VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR})

add_library(pirn_compat_archive STATIC $<TARGET_OBJECTS:pirn_compat_objects>)
set_target_properties(pirn_compat_archive PROPERTIES OUTPUT_NAME pirn_compat)
add_library(pirn_compat_static INTERFACE)
add_dependencies(pirn_compat_static pirn_compat_archive)
target_link_libraries(
  pirn_compat_static
  INTERFACE
    $<BUILD_INTERFACE:$<TARGET_FILE:pirn_compat_archive>>
    $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}pirn_compat${CMAKE_STATIC_LIBRARY_SUFFIX}>
    Threads::Threads)

set_target_properties(pirn_compat PROPERTIES LINKER_LANGUAGE C)
foreach(name IN ITEMS compat compat_static)
  add_library(pirn::${name} ALIAS pirn_${name})
  set_target_properties(pirn_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(
    pirn_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/compat>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat>)
endforeach()

install(TARGETS pirn_compat pirn_compat_static EXPORT pirn-targets)
install(TARGETS pirn_compat_archive)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/compat/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat"
        FILES_MATCHING PATTERN "*.h")
