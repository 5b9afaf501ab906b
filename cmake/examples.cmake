# Every examples/*.cpp is a separate program, linked like a user's.

file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
foreach(source IN LISTS examples)
  cmake_path(GET source STEM stem)
  file(STRINGS "${source}" wants_boost REGEX "^ *# *include *[<\"]boost/")
  if(wants_boost AND NOT Boost_FOUND)
    message(STATUS "examples/${stem}.cpp is left out: it needs the headers of Boost 1.81 or newer")
    continue()
  endif()
  add_executable(example_${stem} "${source}")
  target_link_libraries(example_${stem} PRIVATE pirn::pirn $<$<BOOL:${Boost_FOUND}>:Boost::headers>)
  pirn_warnings(example_${stem})
  set_target_properties(example_${stem} PROPERTIES OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY
                                                                       "${PROJECT_BINARY_DIR}/examples")
endforeach()

# The tour starts the web server as a second process.
if(TARGET example_tour AND TARGET example_web_server)
  add_dependencies(example_tour example_web_server)
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/examples/CMakeLists.txt")
  add_subdirectory(examples)
endif()
