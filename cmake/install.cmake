# find_package(pirn) gives an outside project the target names of this tree.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/pirn")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pirn" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")

list(TRANSFORM PIRN_LAYERS PREPEND pirn_ OUTPUT_VARIABLE layer_targets)
list(TRANSFORM PIRN_OPTIONAL PREPEND pirn_ OUTPUT_VARIABLE optional_targets)
install(TARGETS ${layer_targets} ${optional_targets} pirn_pirn EXPORT pirn-targets)
if(TARGET pirn_sim)
  install(TARGETS pirn_sim EXPORT pirn-targets)
endif()
install(EXPORT pirn-targets NAMESPACE pirn:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/pirn-config.cmake.in" "${PROJECT_BINARY_DIR}/pirn-config.cmake"
                              INSTALL_DESTINATION "${package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pirn-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pirn-config.cmake" "${PROJECT_BINARY_DIR}/pirn-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/pirn-enable-plugin.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/pirn-enable-stack-bounds.cmake" DESTINATION "${package_dir}")
if(PIRN_STACK_BOUNDS)
  install(DIRECTORY "${PIRN_STACK_SUMMARIES}/" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pirn/stack" FILES_MATCHING PATTERN "*.stack")
  install(FILES "${PIRN_STACK_ASSUMPTIONS}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pirn")
endif()

# gdb's commands for fibers. gdb finds a script for a library by the library's path below its auto-load folder, which is
# PREFIX/share/gdb/auto-load for those in PREFIX=/usr. With static libraries, or elsewhere, ~/.gdbinit names the script
# (docs/debugging.md).
install(FILES "${PROJECT_SOURCE_DIR}/tools/pirn_gdb.py" DESTINATION "${CMAKE_INSTALL_DATADIR}/pirn")
if(BUILD_SHARED_LIBS AND TARGET pirn_fiber)
  install(CODE "
    file(REAL_PATH \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\" libraries BASE_DIRECTORY /)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/gdb/auto-load\${libraries}\" TYPE FILE
         RENAME \"libpirn_fiber.so.${PROJECT_VERSION}-gdb.py\" FILES \"${PROJECT_SOURCE_DIR}/tools/pirn_gdb.py\")")
endif()
