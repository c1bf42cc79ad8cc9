// Compares a text with tests/golden/NAME; STOWAGE_UPDATE_GOLDEN=1 writes it instead.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/process.h"

namespace stowage::cli_tests {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(STOWAGE_GOLDEN_DIR) + "/" + name;
  const char* update = std::getenv("STOWAGE_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  EXPECT_EQ(read_text(path), text) << "STOWAGE_UPDATE_GOLDEN=1 writes " << path;
}

}  // namespace stowage::cli_tests
