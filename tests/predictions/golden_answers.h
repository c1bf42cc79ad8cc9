// The recorded answers of one sample: tests/golden/predictions/SAMPLE.json, a question after the
// other with its figures and its plan, one figure and one rule of the plan a line.
#pragma once

#include <string>
#include <vector>

#include "tests/predictions/questions.h"

namespace stowage::predictions {

[[nodiscard]] bool update_wanted();  // STOWAGE_UPDATE_GOLDEN=1

// Byte-stable: equal answers are equal files.
void write_answers(const std::string& sample, const Answers& answers);

// Throws std::runtime_error, or nlohmann's own, where there is none or it cannot be read.
[[nodiscard]] Answers read_answers(const std::string& sample);

// Names of the samples that have a file there, sorted.
[[nodiscard]] std::vector<std::string> recorded_samples();

}  // namespace stowage::predictions
