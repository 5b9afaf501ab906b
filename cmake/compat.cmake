# The drop-in headers' library: pirn::compat and pirn::compat_static, which serve programs written for libaco and usched
# with compat/*.h.

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/compat/*.cpp")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64|i[3-6]86|aarch64|arm64)$")
  list(FILTER sources EXCLUDE REGEX "/aco\\.cpp$")
endif()
if(NOT sources)
  return()
endif()
add_library(pirn_compat_objects OBJECT ${sources})
target_include_directories(pirn_compat_objects PRIVATE "${PROJECT_SOURCE_DIR}/compat" "${PROJECT_SOURCE_DIR}/src")
# The loader would look functions up on whatever stack they are called on first, and needs 3 KiB for it.
target_compile_options(pirn_compat_objects PRIVATE -fno-plt)
pirn_c_library(compat "${PROJECT_SOURCE_DIR}/src/compat/compat.map" Threads::Threads)
foreach(name IN ITEMS pirn_compat pirn_compat_static)
  target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/compat>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat>)
endforeach()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/compat/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/pirn/compat"
        FILES_MATCHING PATTERN "*.h")
