# `cmake --install` and find_package(Stowage [COMPONENTS core executor]).
include(CMakePackageConfigHelpers)
set(STOWAGE_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/Stowage")

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
