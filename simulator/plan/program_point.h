// Program points and the release and reload points that use them, as text and resolved against a
// trace. Syntax (docs/plan-format.md): `phase:layer:where`, phase fwd|bwd|opt, where begin|end|N;
// a layer `layers.+1` counts from the rule's own layer in forward order.
#pragma once

#include <string>
#include <string_view>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Errors (bad_input, message and hint only). `@mb=K` is refused as not supported yet.
[[nodiscard]] Result<ProgramPoint> parse_program_point(std::string_view text);
[[nodiscard]] std::string format_program_point(const ProgramPoint& point);

// "auto", "pack", "pack+3" or a program point; "auto", "unpack" or a program point.
[[nodiscard]] Result<ReleasePoint> parse_release_point(std::string_view text);
[[nodiscard]] Result<ReloadPoint> parse_reload_point(std::string_view text);
[[nodiscard]] std::string format_release_point(const ReleasePoint& point);
[[nodiscard]] std::string format_reload_point(const ReloadPoint& point);

// The point with its layer spelt out. A relative point counts among the layers whose path is its
// prefix and one more component, in forward order, from the one that is or holds `own`, and clamps
// to the first and the last of them. Errors (bad_input): the trace has no such layer (with the
// nearest one), or `own` is in no layer of that kind.
[[nodiscard]] Result<ProgramPoint> absolute_point(const Trace& trace, const ProgramPoint& point,
                                                  LayerId own);

// The reverse: `point` counted from `own`, when both are in one such group of layers and the result
// means the same; else `point` itself. Precondition: the point is absolute.
[[nodiscard]] ProgramPoint relative_point(const Trace& trace, const ProgramPoint& point,
                                          LayerId own);

}  // namespace stowage::simulator
