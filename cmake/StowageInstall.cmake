# `cmake --install` and find_package(Stowage [COMPONENTS core executor]).
include(CMakePackageConfigHelpers)
set(STOWAGE_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Stowage")

# In the project's build the sources lie beside each other; installed they must not be in anybody's way.
get_property(public_headers GLOBAL PROPERTY STOWAGE_PUBLIC_HEADERS)
install(CODE "
  set(ROOTS [[${PROJECT_SOURCE_DIR};${PROJECT_BINARY_DIR}/generated]])
  set(HEADERS [[${public_headers}]])
  set(STAGE [[${PROJECT_BINARY_DIR}/installed_headers]])
  set(INCLUDE_DIR [[${CMAKE_INSTALL_INCLUDEDIR}]])
  cmake_path(ABSOLUTE_PATH INCLUDE_DIR BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
  include([[${PROJECT_SOURCE_DIR}/cmake/StowageInstallHeaders.cmake]])
")

install(EXPORT stowage-core NAMESPACE stowage:: FILE StowageCoreTargets.cmake
  DESTINATION "${STOWAGE_CONFIG_DIR}")
if(STOWAGE_WITH_TORCH)
  install(EXPORT stowage-executor NAMESPACE stowage:: FILE StowageExecutorTargets.cmake
    DESTINATION "${STOWAGE_CONFIG_DIR}")
endif()
configure_package_config_file(cmake/StowageConfig.cmake.in
  "${PROJECT_BINARY_DIR}/generated/StowageConfig.cmake"
  INSTALL_DESTINATION "${STOWAGE_CONFIG_DIR}" PATH_VARS CMAKE_INSTALL_BINDIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/StowageConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/generated/StowageConfig.cmake"
  "${PROJECT_BINARY_DIR}/generated/StowageConfigVersion.cmake"
  cmake/FindTorch.cmake
  cmake/StowageMemoryTest.cmake
  DESTINATION "${STOWAGE_CONFIG_DIR}")
if(STOWAGE_WITH_TORCH)
  install(DIRECTORY examples/plugin DESTINATION "${CMAKE_INSTALL_DATADIR}/stowage/examples")
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples/ci DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
