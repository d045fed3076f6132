# A room is one folder and one static library. `kintsugi_room(wire DEPENDS base)` says which rooms it may include;
# scripts/check_rooms reads these very lines and fails on an #include that goes against them. PRECOMPILE: headers of libraries
# that most of its files reach and that take long to read.

function(kintsugi_room room)
  cmake_parse_arguments(ARG "" "" "DEPENDS;SOURCES;THIRD_PARTY;PRECOMPILE" ${ARGN})
  string(REPLACE "/" "_" target "kg_${room}")
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  foreach(dependency ${ARG_DEPENDS})
    string(REPLACE "/" "_" dependency "${dependency}")
    target_link_libraries(${target} PUBLIC kg_${dependency})
  endforeach()
  target_link_libraries(${target} PRIVATE kintsugi_flags ${ARG_THIRD_PARTY})
  target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h ${ARG_PRECOMPILE})
endfunction()

# How much longer a test may take than it is said to: a slow machine, and with sanitizers as many more (for which
# tests/patience.h has a factor for deadlines inside tests, too). It bounds what hangs, no more.
set(KINTSUGI_TEST_PATIENCE 3)
if(KINTSUGI_SANITIZE)
  set(KINTSUGI_TEST_PATIENCE 4)
endif()

# What the ThreadSanitizer stage has to build.
if(KINTSUGI_TESTS AND NOT TARGET threaded_tests)
  add_custom_target(threaded_tests)
endif()

# Unit tests of a room: every tests/<room>/*_test.cc in one program, every *_pgtest.cc, which need a real PostgreSQL and get the
# label `pgtest`, in another. One ctest entry is one suite: what its tests share, a server above all, is started once. One
# test alone: build/test/<room>/kg_<room>_pgtest --gtest_filter=Suite.Test, from the repository's root. LABELS adds labels:
# `threaded` is run again under ThreadSanitizer, `noasan` is left out under AddressSanitizer (scripts/run-tests). BUSY: a suite
# that keeps all cores at work. TIMEOUT: of each suite.
function(kintsugi_tests room)
  if(NOT KINTSUGI_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT;BUSY" "DEPENDS;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 240)
  endif()
  math(EXPR timeout "${ARG_TIMEOUT} * ${KINTSUGI_TEST_PATIENCE}")
  string(REPLACE "/" "_" name "${room}")
  foreach(kind test pgtest)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_${kind}.cc)
    if(NOT sources)
      continue()
    endif()
    set(program kg_${name}_${kind})
    add_executable(${program} ${sources})
    target_link_libraries(${program} PRIVATE kintsugi_flags kg_${name} GTest::gtest GTest::gtest_main GTest::gmock
                          ${ARG_LINK})
    foreach(dependency ${ARG_DEPENDS})
      string(REPLACE "/" "_" dependency "${dependency}")
      target_link_libraries(${program} PRIVATE kg_${dependency})
    endforeach()
    target_precompile_headers(${program} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h <gtest/gtest.h>)
    set(labels ${name} ${kind} ${ARG_LABELS})
    set(suites ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
    add_custom_command(TARGET ${program} POST_BUILD VERBATIM
                       COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D INTO=${suites} -D BUSY=${ARG_BUSY}
                               -D DIRECTORY=${PROJECT_SOURCE_DIR} -D "PROPERTIES=TIMEOUT ${timeout} LABELS [==[${labels}]==]"
                               -P ${PROJECT_SOURCE_DIR}/cmake/suites.cmake)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${program}_tests.cmake "if(EXISTS \"${suites}\")
  include(\"${suites}\")
else()
  add_test(${program}_NOT_BUILT ${program}_NOT_BUILT)
endif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${program}_tests.cmake)
    if("threaded" IN_LIST labels)
      add_dependencies(threaded_tests ${program})
    endif()
  endforeach()
endfunction()
