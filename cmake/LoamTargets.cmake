# The house rules as CMake functions: one library a folder, one link test a library.

# loam_library(NAME FOLDER SOURCES a.cpp ... DEPENDS loam_x ... SYSTEM lib ...)
#
# Makes the static library loam_<folder> from SOURCES (default: every .cpp below the folder).
# DEPENDS and SYSTEM are all that it may
# need: the link test `link.<folder>` links the whole archive against exactly
# these and fails on an undefined symbol.
function(loam_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;SYSTEM" ${ARGN})
  set(target loam_${folder})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(NOT ARG_SOURCES)
    return()
  endif()
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} ${ARG_SYSTEM} PRIVATE loam_warnings)

  set(link_test link_${folder})
  set(link_main ${CMAKE_CURRENT_BINARY_DIR}/${link_test}.cpp)
  file(GENERATE OUTPUT ${link_main} CONTENT "int main() { return 0; }\n")
  add_executable(${link_test} ${link_main})
  set_target_properties(${link_test} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/link)
  target_link_libraries(${link_test} PRIVATE
    -Wl,--whole-archive ${target} -Wl,--no-whole-archive ${ARG_DEPENDS} ${ARG_SYSTEM})
  add_test(NAME link.${folder} COMMAND ${link_test})
  set_tests_properties(link.${folder} PROPERTIES LABELS "link")
endfunction()

# loam_program(NAME SOURCES ... DEPENDS ...): an executable in the programs' folder.
function(loam_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} loam_warnings)
endfunction()

# loam_test_library(NAME SOURCES ... DEPENDS ...): what several test programs share, compiled once.
function(loam_test_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} GTest::gtest PRIVATE loam_warnings)
endfunction()

# loam_test(NAME SOURCES ... DEPENDS ... [LABELS ...] [TIMEOUT s]): a GoogleTest
# program, one CTest entry for the whole program so that a run starts few processes.
function(loam_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  # Half of a test's compile time is reading headers: several are read as one. A name without
  # linkage must so be the only one of a program; what two tests share belongs into a header.
  set_target_properties(test_${name} PROPERTIES
    UNITY_BUILD ${LOAM_UNITY_TESTS} UNITY_BUILD_BATCH_SIZE 6)
  # What a test itself computes is little: a third of its compile time buys nothing.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  target_compile_definitions(test_${name} PRIVATE
    LOAM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    LOAM_BUILD_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} GTest::gtest_main GTest::gmock loam_warnings)
  add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(LOAM_SANITIZE_ADDRESS OR LOAM_SANITIZE_THREAD)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 6")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# loam_fuzz(NAME SOURCES a.cpp ... DEPENDS loam_x ... CORPUS folder [RUNS n])
#
# The program fuzz_<NAME> from SOURCES, which define LLVMFuzzerTestOneInput (the libFuzzer
# interface: return 0, abort on a finding). CORPUS is a folder of seed inputs, one a file,
# relative to the calling CMakeLists.txt.
#   With LOAM_FUZZ (preset `fuzz`, clang) it is a libFuzzer program, which `./dev fuzz [NAME]` runs
#   as long as wanted; the target `fuzzers` builds them all and fuzzers.txt names each and its
#   corpus.
#   Without it a main of our own (tests/fuzz/replay.cpp) is linked in, so that any compiler
#   tests the target: it runs the corpus and RUNS mutations of it, the same ones each time.
# Either way the CTest entry fuzz.<NAME> makes RUNS runs (default 20000) with a fixed seed.
add_custom_target(fuzzers)
file(WRITE ${CMAKE_BINARY_DIR}/fuzzers.txt "")
function(loam_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS;RUNS" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_RUNS)
    set(ARG_RUNS 20000)
  endif()
  get_filename_component(corpus ${ARG_CORPUS} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  file(APPEND ${CMAKE_BINARY_DIR}/fuzzers.txt "${name} ${corpus}\n")
  add_executable(fuzz_${name} ${ARG_SOURCES})
  add_dependencies(fuzzers fuzz_${name})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPENDS} loam_warnings)
  if(LOAM_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set(found ${CMAKE_CURRENT_BINARY_DIR}/found_${name})  # libFuzzer writes what it finds here
    file(MAKE_DIRECTORY ${found})
    add_test(NAME fuzz.${name}
      COMMAND fuzz_${name} -runs=${ARG_RUNS} -seed=1 -verbosity=0 ${found} ${corpus})
  else()
    target_link_libraries(fuzz_${name} PRIVATE fuzz_replay)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} ${ARG_RUNS} ${corpus})
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 120 LABELS "fuzz")
endfunction()
