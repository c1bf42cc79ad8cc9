// Loads plugins (executor/plugin.h) and makes models of them. What a plugin does wrong is an Error
// with the library's file: bad_input unless it is said otherwise.
#pragma once

#include <memory>
#include <string>

#include "executor/model.h"
#include "executor/plugin.h"
#include "traces/result.h"

namespace stowage::executor {

// Loads the library, once a process, and never unloads it: autograd's nodes may outlive a model.
// Loading runs its code. Errors: no such file, no library, no interface, another version. Static
// objects whose constructors throw end the process, as dlopen() has it: with one line that names
// the file and what was thrown, and the exit code of bad input. Those that abort end it without.
[[nodiscard]] Result<const PluginDescriptor*> load_plugin(const std::string& file);

// Whether a library was loaded, or tried to be: code that is not ours may have something to do when
// the process ends.
[[nodiscard]] bool is_plugin_loaded();

// What the plugin says of itself; its name is "plugin:FILE" as in the spec.
[[nodiscard]] Result<ModelInfo> plugin_info(const ModelSpec& spec);

// complete_model_spec() of "plugin:FILE:..". Errors (usage): unknown option with the nearest one.
[[nodiscard]] Result<ModelSpec> complete_plugin_spec(const ModelSpec& spec);

// The model of a complete spec, checked (check_model). What its load_batch() and forward() throw
// comes out as c10::Error that names the file; out of memory and c10::Error pass through.
[[nodiscard]] Result<std::unique_ptr<Model>> make_plugin_model(const ModelSpec& spec,
                                                               c10::Device device,
                                                               at::ScalarType dtype,
                                                               std::int64_t seed);

}  // namespace stowage::executor
