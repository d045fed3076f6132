# A test of the whole program: a Python file of the calling folder that starts `kintsugi` and real PostgreSQL servers.
# `kintsugi_program_test(moves.held held_test.py SECONDS 60 LABEL storm)`. ARGS: for the file. CONFIGURATION: only run by
# `ctest -C that`. PROCESSORS: that many are busy with it. SERIAL: nothing else runs beside it.
function(kintsugi_program_test name file)
  if(NOT TARGET kintsugi)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "SECONDS;LABEL;CONFIGURATION;PROCESSORS" "ARGS" ${ARGN})
  math(EXPR timeout "${ARG_SECONDS} * ${KINTSUGI_TEST_PATIENCE}")
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  set(only)
  if(ARG_CONFIGURATION)
    set(only CONFIGURATIONS ${ARG_CONFIGURATION})
  endif()
  # Debian's Python: python3-psycopg and python3-asyncpg are installed for this one.
  add_test(NAME ${name} ${only} COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${ARG_LABEL}" PROCESSORS ${ARG_PROCESSORS}
    RUN_SERIAL ${ARG_SERIAL} ENVIRONMENT "KINTSUGI_PROGRAM=$<TARGET_FILE:kintsugi>;PYTHONDONTWRITEBYTECODE=1;KINTSUGI_TEST_TIMEOUT=${timeout}")
endfunction()
