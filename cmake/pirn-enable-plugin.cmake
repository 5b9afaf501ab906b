# pirn_enable_plugin(TARGET): compiles, and where it is linked from bitcode links, TARGET with the compiler plugin. Where
# there is none for the compiler in use nothing changes but speed, and a status message says so.
function(pirn_enable_plugin target)
  string(REGEX MATCH "^[0-9]+" version "${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT DEFINED PIRN_PLUGIN_FILE_${version})
    message(STATUS "pirn: no plugin for ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}: ${target} is compiled without")
    return()
  endif()
  set(plugin "${PIRN_PLUGIN_FILE_${version}}")
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-fplugin=${plugin}>
                                           $<$<COMPILE_LANGUAGE:C,CXX>:-fpass-plugin=${plugin}>)
  if(TARGET pirn_plugin_${version})
    add_dependencies(${target} pirn_plugin_${version})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${plugin}")
  endif()
endfunction()
