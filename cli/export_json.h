// What `stowage export` did, as "stowage-export/1".
#pragma once

#include <string>

#include "report/export_format.h"

namespace stowage::cli {

struct ExportFacts {
  std::string output;
  report::ExportFormat format = report::ExportFormat::chrome;
  report::CsvTable table = report::CsvTable::memory;
  Bytes bytes = 0;  // ahead of compression
  const report::StepView* step = nullptr;
};

[[nodiscard]] std::string export_json(const ExportFacts& facts);

}  // namespace stowage::cli
