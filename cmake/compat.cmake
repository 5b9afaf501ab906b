# The drop-in headers' library: pirn::compat and pirn::compat_static, which serve programs written for libaco and usched
# with compat/*.h.

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/compat/*.cpp")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|i[3-6]86|aarch64|arm64)$")
  list(FILTER sources EXCLUDE REGEX "/aco\\.cpp$")
  set(foreign "")
else()
  set(foreign src/compat/foreign/aco_h_untold.cpp src/compat/foreign/aco_h_told.cpp)  # in this order
endif()
if(NOT sources)
  return()
endif()
add_library(pirn_compat_objects OBJECT ${sources})
target_include_directories(pirn_compat_objects PRIVATE "${PROJECT_SOURCE_DIR}/compat" "${PROJECT_SOURCE_DIR}/src")
# The loader would look functions up on the stack of their first call, and needs 3 KiB for it.
target_compile_options(pirn_compat_objects PRIVATE -fno-plt)
if(foreign)
  pirn_c_library(compat "${PROJECT_SOURCE_DIR}/src/compat/compat.map" NAMELINK_SKIP Threads::Threads)

  # The message for a program that was compiled with libaco's own header: part of the archive, and a separate archive
  # beside the shared library. That archive is a file for its users and no target, as the static library is.
  add_library(pirn_compat_foreign_objects OBJECT ${foreign})
  target_include_directories(pirn_compat_foreign_objects PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(pirn_compat_foreign_objects PRIVATE -fno-lto)  # else gcc's archives do not list asm names
  pirn_warnings(pirn_compat_foreign_objects)
  target_sources(pirn_compat_archive PRIVATE $<TARGET_OBJECTS:pirn_compat_foreign_objects>)
  add_library(pirn_compat_foreign STATIC $<TARGET_OBJECTS:pirn_compat_foreign_objects>)
  add_dependencies(pirn_compat pirn_compat_foreign)
  set(file "${CMAKE_STATIC_LIBRARY_PREFIX}pirn_compat_foreign${CMAKE_STATIC_LIBRARY_SUFFIX}")
  target_link_libraries(
    pirn_compat INTERFACE $<BUILD_INTERFACE:$<TARGET_FILE:pirn_compat_foreign>>
                          $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/${file}>)
  if(PIRN_INSTALL)
    install(TARGETS pirn_compat_foreign)
    # -lpirn_compat finds a linker script that names both.
    set(soname "${CMAKE_SHARED_LIBRARY_PREFIX}pirn_compat${CMAKE_SHARED_LIBRARY_SUFFIX}.${PROJECT_VERSION_MAJOR}")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/namelink/libpirn_compat.so"
         CONTENT "/* The shared library, and what tells a program that was compiled with another aco.h. */\nINPUT(${soname} ${file})\n")
    install(FILES "${PROJECT_BINARY_DIR}/namelink/libpirn_compat.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
else()
  pirn_c_library(compat "${PROJECT_SOURCE_DIR}/src/compat/compat.map" Threads::Threads)
endif()
foreach(name IN ITEMS pirn_compat pirn_compat_static)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/compat>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat>)
endforeach()
if(PIRN_INSTALL)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/compat/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat"
          FILES_MATCHING PATTERN "*.h")
endif()
