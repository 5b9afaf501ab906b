# Parts that a program links by name, since they replace functions of the C library in the whole program or few programs
# use them: pirn::<name> is made of src/<layer>/<name>, on top of that layer. None is in pirn::pirn. Static, so that
# what replaces a function is in the program itself.

set(PIRN_OPTIONAL "")

# pirn_optional(NAME LAYER DESCRIPTION)
function(pirn_optional name layer description)
  if(NOT TARGET pirn_${layer})
    return()
  endif()
  set(target pirn_${name})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/${name}/*.cpp")
  add_library(${target} STATIC ${sources})
  add_library(pirn::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} PIRN_LAYER ${layer} PIRN_DESCRIPTION "${description}")
  if(BUILD_SHARED_LIBS)  # then others of the user's may be shared too
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC pirn_${layer})
  pirn_warnings(${target})
  list(APPEND PIRN_OPTIONAL ${name})
  set(PIRN_OPTIONAL ${PIRN_OPTIONAL} PARENT_SCOPE)
endfunction()

pirn_optional(held_mutexes fiber "reports fibers that suspend with a pthread mutex")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  pirn_optional(bounded fiber "fibers on stacks that the compiler plugin has computed")
endif()
pirn_optional(biased_mutex sync "a lock and a semaphore that cost the fibers of one worker no atomic operation")
find_path(PIRN_CARES_INCLUDE ares.h)
find_library(PIRN_CARES_LIBRARY cares)
if(PIRN_CARES_INCLUDE AND PIRN_CARES_LIBRARY)
  pirn_optional(resolver net "names, by c-ares")
endif()
if(TARGET pirn_resolver)
  target_include_directories(pirn_resolver PRIVATE "${PIRN_CARES_INCLUDE}")
  # By name where pirn is installed, since an installation may be moved.
  target_link_libraries(pirn_resolver PRIVATE "$<BUILD_INTERFACE:${PIRN_CARES_LIBRARY}>" $<INSTALL_INTERFACE:cares>)
elseif(TARGET pirn_net)
  message(STATUS "pirn::resolver is left out: it needs c-ares (Debian: libc-ares-dev)")
endif()
if(TARGET pirn_held_mutexes)
  # Otherwise the linker takes it only if the program itself uses a mutex, and not for those of shared libraries.
  target_link_options(pirn_held_mutexes INTERFACE LINKER:--undefined=pthread_mutex_lock)
endif()
