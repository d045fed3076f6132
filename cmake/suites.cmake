# Run when a GoogleTest program has been built: writes, for ctest, one test for each of its suites.
#   cmake -D PROGRAM=... -D INTO=... -D DIRECTORY=... -D "PROPERTIES=NAME value ..." -D BUSY=suite -P suites.cmake
execute_process(COMMAND ${PROGRAM} --gtest_list_tests WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" lines "${listed}")
set(text "")
set(suite "")
foreach(line ${lines})
  if(line MATCHES "^([A-Za-z0-9_/]+)[.]")
    set(suite ${CMAKE_MATCH_1})
  endif()
  # A suite whose tests are all disabled would pass with nothing run.
  if(NOT line MATCHES "^  " OR line MATCHES "^  DISABLED_" OR suite STREQUAL "")
    continue()
  endif()
  string(APPEND text "add_test([==[${suite}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
         "set_tests_properties([==[${suite}]==] PROPERTIES WORKING_DIRECTORY [==[${DIRECTORY}]==] ${PROPERTIES})\n")
  if(suite STREQUAL "${BUSY}")
    string(APPEND text "set_tests_properties([==[${suite}]==] PROPERTIES PROCESSORS 3)\n")
  endif()
  set(suite "")
endforeach()
file(WRITE ${INTO} "${text}")
