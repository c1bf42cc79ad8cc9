#include "cli/shown_trace.h"

#include <utility>

#include "cli/console.h"
#include "traces/validate.h"

namespace stowage::cli {

Result<LoadedTrace> load_shown_trace(const std::string& path) {
  Result<LoadedTrace> loaded = load_trace(path);
  if (!loaded) return loaded;
  Trace& trace = loaded->trace;
  for (std::string& text : trace.strings) text = printable(std::move(text));
  for (std::string* text :
       {&trace.run.model, &trace.run.dtype, &trace.run.autocast, &trace.run.optimizer,
        &trace.run.grad_scaler, &trace.run.created, &trace.env.device, &trace.env.device_name}) {
    *text = printable(std::move(*text));
  }
  // Two names that differ in a control character alone would be one now.
  if (const Status valid = validate(trace, path); !valid) return valid.error();
  return loaded;
}

}  // namespace stowage::cli
