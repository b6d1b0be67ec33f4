# The model library (libllama and ggml) from its npm packages: the target llama::llama where they are
# there or can be fetched. Without them everything else is built and loam-engine is not; the
# configure step says what is missing.
#
# The shared objects are prebuilt; the headers come from the source bundle of a second package. Their
# versions must be the same, or structs would not match.
option(LOAM_LLAMA "Build loam-engine with the model library from npm" ON)
set(LOAM_LLAMA_DIR "${PROJECT_SOURCE_DIR}/build/llama" CACHE PATH "Where the packages are kept")

function(loam_find_llama)
  if(NOT LOAM_LLAMA)
    message(STATUS "loam-engine is not built: LOAM_LLAMA is off")
    return()
  endif()
  execute_process(
    COMMAND ${PROJECT_SOURCE_DIR}/tools/fetch_llama.sh ${LOAM_LLAMA_DIR}
    RESULT_VARIABLE failed ERROR_VARIABLE why ERROR_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(WARNING "loam-engine is not built: ${why}. Install npm or go online, then configure again.")
    return()
  endif()
  set(modules ${LOAM_LLAMA_DIR}/node_modules)
  set(objects ${modules}/@node-llama-cpp/linux-x64/bins/linux-x64)
  file(READ ${modules}/node-llama-cpp/llama/binariesGithubRelease.json release)
  string(JSON headers_version GET "${release}" release)
  file(READ ${objects}/_nlcBuildMetadata.json metadata)
  string(JSON objects_version GET "${metadata}" buildOptions llamaCpp release)
  if(NOT headers_version STREQUAL objects_version)
    message(WARNING "loam-engine is not built: the model library is ${objects_version} and its "
      "headers are ${headers_version}. Correct tools/llama/package.json.")
    return()
  endif()
  foreach(name llama ggml ggml-base)
    if(name STREQUAL "ggml-base")
      set(object ${objects}/libggml-base.so)
    else()
      set(object ${objects}/lib${name}.${objects_version}.so)
    endif()
    add_library(llama::${name} SHARED IMPORTED GLOBAL)
    set_target_properties(llama::${name} PROPERTIES
      IMPORTED_LOCATION ${object}
      INTERFACE_INCLUDE_DIRECTORIES "${LOAM_LLAMA_DIR}/source/include;${LOAM_LLAMA_DIR}/source/ggml/include")
  endforeach()
  set_property(TARGET llama::llama APPEND PROPERTY INTERFACE_LINK_LIBRARIES llama::ggml llama::ggml-base)
  # Where the library finds its processor-specific parts, and the vocabulary for generated models.
  set_property(TARGET llama::llama APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS
    LOAM_LLAMA_BACKENDS="${objects}"
    LOAM_LLAMA_VOCABULARY="${LOAM_LLAMA_DIR}/source/models/ggml-vocab-gpt-2.gguf"
    LOAM_LLAMA_VERSION="${objects_version}")
  message(STATUS "Model library ${objects_version}: loam-engine is built")
endfunction()
loam_find_llama()
