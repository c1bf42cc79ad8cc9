// Small pieces of text that explanations are made of.
#pragma once

#include <string>

#include "report/moment.h"
#include "simulator/plan/plan.h"
#include "simulator/step/step.h"
#include "traces/size_text.h"
#include "traces/trace.h"

namespace stowage::report {

// It was recorded by `profile --quick`: its times are of few steps.
[[nodiscard]] bool is_quick(const Trace& trace);

// "161 MB (161,480,704 bytes)": rounded for the eye, exact for the test.
[[nodiscard]] std::string exact_bytes(Bytes bytes);
[[nodiscard]] std::string exact_bytes(Bytes bytes, ByteUnits units);
// "161,480,704"
[[nodiscard]] std::string with_commas(std::int64_t number);
// "+3.2 %" with a sign, "3.2 %" without. What rounds to zero has no minus.
[[nodiscard]] std::string percent_text(double value, int digits, bool sign);
// "+3.2 %", "-0.1 %": `part` against `whole`, one decimal; "-" when whole is 0.
[[nodiscard]] std::string relative(std::int64_t part, std::int64_t whole);
// "12.3 %" of a share.
[[nodiscard]] std::string percent(std::int64_t part, std::int64_t whole);
// "1 op", "2 ops"
[[nodiscard]] std::string count_of(std::int64_t number, const std::string& noun);
// "gpt2:layers=6, batch 4, seq 256, fp32, optimizer none"
[[nodiscard]] std::string run_line(const Trace& trace);
// "aten::mm (op 812) in layers.3.mlp, backward"
[[nodiscard]] std::string place(const Moment& moment);
// "Parameters of 12 modules (layers.[0-5].attn, layers.[0-5].mlp) in 3 shards stream, on the device
// only around their uses, prefetch 1.\n"; without the shards when the prefetch is automatic, to
// which they mean nothing. Modules: those that have parameters of their own, at most four names.
// And "Optimizer state of 12 modules (..) streams, on the device only for its update.\n", gradients
// and updates on the host likewise. Empty for a plan that does none of it. `step` is the plan's.
[[nodiscard]] std::string streaming_lines(const simulator::Step& step, const simulator::Plan& plan);

}  // namespace stowage::report
