# Installs this build into a fresh prefix, for the tests of this folder.
file(REMOVE_RECURSE "${prefix}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${build}" --prefix "${prefix}" RESULT_VARIABLE result OUTPUT_VARIABLE output
                                                                                                   ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "${output}")
endif()
