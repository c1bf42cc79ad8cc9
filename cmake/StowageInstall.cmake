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
# The manual page and the shells' completions, which the built command prints. A sanitizer's build has none.
if(TARGET stowage AND NOT STOWAGE_SANITIZE)
  set(manual "${PROJECT_BINARY_DIR}/generated/manual")
  set(manual_programs stowage)
  if(TARGET stowage-torch)  # it has the options of the verbs that run a model
    list(APPEND manual_programs stowage-torch)
  endif()
  set(manual_files)
  foreach(shell bash zsh fish)
    add_custom_command(OUTPUT "${manual}/${shell}" DEPENDS ${manual_programs}
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${manual}"
      COMMAND stowage completions ${shell} --quiet > "${manual}/${shell}" VERBATIM)
    list(APPEND manual_files "${manual}/${shell}")
  endforeach()
  add_custom_command(OUTPUT "${manual}/stowage.1" DEPENDS ${manual_programs}
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${manual}"
    COMMAND stowage man --quiet > "${manual}/stowage.1" VERBATIM)
  add_custom_target(stowage_manual ALL DEPENDS ${manual_files} "${manual}/stowage.1")
  install(FILES "${manual}/stowage.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${manual}/bash" RENAME stowage
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${manual}/zsh" RENAME _stowage DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${manual}/fish" RENAME stowage.fish
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
if(STOWAGE_WITH_TORCH)
  install(DIRECTORY examples/plugin DESTINATION "${CMAKE_INSTALL_DATADIR}/stowage/examples")
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY examples/ci DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
