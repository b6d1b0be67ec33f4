# Compiler cache, linker and warning flags, chosen from what the machine has.

find_program(LOAM_CCACHE ccache)
if(LOAM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${LOAM_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${LOAM_CCACHE}")
endif()

find_program(LOAM_MOLD mold)
find_program(LOAM_LLD ld.lld)
if(LOAM_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(LOAM_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# RelWithDebInfo without NDEBUG: assertions stay on in what we ship.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")

# Most of a build is parsing: fewer rounds of g++'s garbage collector take a tenth off it, for 100 MiB
# more a file.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-expand=200 --param=ggc-min-heapsize=1048576)
endif()

if(LOAM_SANITIZE_ADDRESS)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(LOAM_SANITIZE_THREAD)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()
if(LOAM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Our own code only; system headers come in through -isystem.
add_library(loam_warnings INTERFACE)
target_compile_options(loam_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Werror)
