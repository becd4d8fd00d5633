# For find_package(kernelcore): the target kernelcore::headers, which needs C++17 and no library.
if(NOT TARGET kernelcore::headers)
  add_library(kernelcore::headers INTERFACE IMPORTED)
  set_target_properties(kernelcore::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
