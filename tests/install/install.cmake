# Run by the test: a fresh prefix, a fresh build of the outside project, then that project's tests.
file(REMOVE_RECURSE "${dir}")
foreach(command IN ITEMS
    "--install;${build};--prefix;${dir}/prefix"
    "-S;${source};-B;${dir}/build;-G;${generator};-DCMAKE_PREFIX_PATH=${dir}/prefix;-DCMAKE_CXX_COMPILER=${compiler};-DWITH_SIM=${sim}"
    "--build;${dir}/build"
    "--build;${dir}/build;--target;test")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result)
    message(FATAL_ERROR "cmake ${command}\n${output}")
  endif()
endforeach()
