// What a JSON text is, and the facts of a result (what execute, verify, simulate and other verbs
// print with --json).
#pragma once

#include <string>
#include <vector>

#include "report/diff.h"

namespace stowage::report {

// "trace", "plan", or the verb of a result ("verify"). By the "schema" of the outermost object.
// Reads only up to it. Errors (bad_input): not JSON, no object, no schema of Stowage.
[[nodiscard]] Result<std::string> kind_of_json(const std::string& text, const std::string& file);

// One fact a scalar, named by its keys with dots between; arrays by their length alone. null is no
// fact. Units by the names: .._bytes, .._ns. Errors (bad_input): not JSON, nested too deeply.
[[nodiscard]] Result<std::vector<Fact>> facts_of_result(const std::string& text,
                                                        const std::string& file);

}  // namespace stowage::report
