// What several *_json files of the command line write alike. Included by *_json.cpp only.
#pragma once

#include "cli/baseline.h"
#include "report/answers/answer_pieces_json.h"

namespace stowage::cli {

using report::bytes_or_null;
using report::dump;
using report::error_member;
using report::Json;
using report::text_or_null;

// What a step costs, in bytes and ns; what is not known is null.
[[nodiscard]] Json cost_json(const StepCost& cost);

}  // namespace stowage::cli
