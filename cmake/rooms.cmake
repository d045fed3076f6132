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

# Unit tests of a room: every tests/<room>/*_test.cc, one program, one ctest entry a test case.
# Names that end in _pgtest.cc need a real PostgreSQL and get the label `pgtest`. LABELS adds labels to both kinds:
# `threaded` is run again under ThreadSanitizer, `noasan` is left out under AddressSanitizer (scripts/run-tests). SERIAL:
# nothing else runs beside these tests. BUSY: a suite whose tests keep all cores at work, and so run one at a time.
function(kintsugi_tests room)
  if(NOT KINTSUGI_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT;BUSY" "DEPENDS;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
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
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                         PROPERTIES TIMEOUT ${timeout} RUN_SERIAL ${ARG_SERIAL})
    # gtest_discover_tests takes a list of labels apart, so they are given when ctest reads what was discovered.
    set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${program}_labels.cmake)
    file(WRITE ${labels_file} "set_tests_properties(\${${program}_TESTS} PROPERTIES LABELS \"${labels}\")\n")
    if(ARG_BUSY)
      file(APPEND ${labels_file} "foreach(each IN LISTS ${program}_TESTS)
  if(each MATCHES \"^${ARG_BUSY}[.]\")
    set_tests_properties(\${each} PROPERTIES PROCESSORS 3)
  endif()
endforeach()\n")
    endif()
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
    if("threaded" IN_LIST labels)
      add_dependencies(threaded_tests ${program})
    endif()
  endforeach()
endfunction()
