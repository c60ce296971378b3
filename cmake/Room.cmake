# ridgeline_room(NAME [TORCH] [LIBRARIES ...])
#
# Makes the library ridgeline_NAME of src/NAME/*.cpp and src/NAME/*/*.cpp, which may use every room declared before it,
# and, where
# tests/NAME/ holds *_test.cpp, the program test_NAME with all of them (one ctest entry for each *_test.cpp).
# Headers are included from src/: #include "spec/model.h".
set_property(GLOBAL PROPERTY RIDGELINE_ROOMS "")

# Where tests find files of the checkout: a header, so that the compiler cache serves the other tests to every checkout.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/tests_include/source_folder.h
     CONTENT "#pragma once\n#define RIDGELINE_SOURCE_DIR \"@CMAKE_SOURCE_DIR@\"\n" @ONLY)

# GoogleTest's headers, precompiled once for all test programs without libtorch: they are most of what such a file costs.
function(ridgeline_precompile_test target)
  if(NOT TARGET ridgeline_test_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/test_pch.cpp "// Carries the precompiled header that tests share.\n")
    add_library(ridgeline_test_pch STATIC ${CMAKE_BINARY_DIR}/test_pch.cpp)
    target_link_libraries(ridgeline_test_pch PUBLIC GTest::gtest GTest::gmock nlohmann_json::nlohmann_json fmt::fmt
                                                    spdlog::spdlog)
    target_precompile_headers(ridgeline_test_pch PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <fmt/ranges.h>
                              <nlohmann/json.hpp>)
  endif()
  target_compile_options(${target} PRIVATE -fPIC)  # as the header's carrier
  target_precompile_headers(${target} REUSE_FROM ridgeline_test_pch)
endfunction()

function(ridgeline_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "LIBRARIES" ${ARGN})
  get_property(above GLOBAL PROPERTY RIDGELINE_ROOMS)
  set_property(GLOBAL APPEND PROPERTY RIDGELINE_ROOMS ridgeline_${name})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp
       ${CMAKE_SOURCE_DIR}/src/${name}/*/*.cpp)
  if(sources)
    add_library(ridgeline_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(ridgeline_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(ridgeline_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(ridgeline_${name} ${scope} ${above} ${ROOM_LIBRARIES} Threads::Threads)
  if(ROOM_TORCH)
    target_link_libraries(ridgeline_${name} ${scope} ridgeline_torch)
    if(sources)
      target_precompile_headers(ridgeline_${name} REUSE_FROM ridgeline_torch_pch)
    endif()
  endif()

  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cpp)
  if(RIDGELINE_TESTS AND tests)
    add_executable(test_${name} ${tests})
    target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_BINARY_DIR}/tests_include)
    target_link_libraries(test_${name} PRIVATE ridgeline_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    # What tests cost is compiling them, not running.
    target_compile_options(test_${name} PRIVATE -O1)
    if(ROOM_TORCH)
      target_precompile_headers(test_${name} REUSE_FROM ridgeline_torch_pch)
    else()
      ridgeline_precompile_test(test_${name})
    endif()
    add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
  endif()
  # What a room tests otherwise, against Python packages for instance, is in a CMakeLists.txt of its own.
  if(RIDGELINE_TESTS AND EXISTS ${CMAKE_SOURCE_DIR}/tests/${name}/CMakeLists.txt)
    add_subdirectory(${CMAKE_SOURCE_DIR}/tests/${name} ${CMAKE_BINARY_DIR}/tests/${name})
  endif()
endfunction()
