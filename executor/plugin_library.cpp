#include "executor/plugin_library.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/device/first_line.h"
#include "executor/model_check.h"
#include "executor/models/option_reader.h"
#include "executor/user_code.h"

namespace stowage::executor {

namespace {

constexpr const char* kEntry = "stowage_plugin";
using Entry = const PluginDescriptor* (*)();

Error bad_plugin(const std::string& file, std::string message, std::string hint = {}) {
  return {ErrorCode::bad_input, std::move(message), file, "", std::move(hint)};
}

// The loader's words without the file, which the error names already.
std::string loader_message(const std::string& path) {
  const char* const said = ::dlerror();
  std::string text = said == nullptr ? "unknown reason" : first_line(said);
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

// Empty when the plugin is of this build's versions.
std::string other_version(const PluginDescriptor& plugin) {
  if (plugin.interface != kPluginInterface) {
    return "plugin interface " + std::to_string(plugin.interface) + ", this program has " +
           std::to_string(kPluginInterface);
  }
  const std::string stowage(kVersion);
  if (plugin.stowage != stowage) {
    return std::string("Stowage ") + plugin.stowage + ", this program is " + stowage;
  }
  if (plugin.torch != std::string_view(TORCH_VERSION)) {
    return std::string("LibTorch ") + plugin.torch + ", this program with " TORCH_VERSION;
  }
  if (plugin.abi != std::string_view(STOWAGE_COMPILER_ABI)) {
    return std::string(plugin.abi) + ", this program with " STOWAGE_COMPILER_ABI;
  }
  return {};
}

Result<const PluginDescriptor*> find_descriptor(void* library, const std::string& file) {
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, kEntry));
  if (entry == nullptr) {
    return bad_plugin(file, "it is a library without Stowage's plugin interface",
                      "one of its files needs STOWAGE_PLUGIN(info, make), executor/plugin.h");
  }
  const PluginDescriptor* const plugin = entry();
  if (plugin == nullptr) return bad_plugin(file, "its stowage_plugin() returned nothing");
  if (const std::string other = other_version(*plugin); !other.empty()) {
    return bad_plugin(file, "it was built against " + other, "build it again");
  }
  return plugin;
}

// A library of another version often lacks symbols. Bound lazily it may still say which version.
Error cannot_load(const std::string& path, const std::string& file) {
  const std::string why = loader_message(path);
  void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr && ::dlsym(library, kEntry) != nullptr) {
    Result<const PluginDescriptor*> plugin = find_descriptor(library, file);
    if (!plugin) return plugin.error();
  }
  return bad_plugin(file, "it cannot be loaded as a library: " + why);
}

// Says which library's static objects threw: dlopen() lets no exception through, so the process
// ends, and PyTorch's or the standard handler would not name the file. One thread at a time.
class LoadingNamed {
 public:
  explicit LoadingNamed(const std::string& file) {
    loading() = &file;
    before() = std::set_terminate(&terminated);
  }
  ~LoadingNamed() {
    std::set_terminate(before());
    loading() = nullptr;
  }
  LoadingNamed(const LoadingNamed&) = delete;
  LoadingNamed& operator=(const LoadingNamed&) = delete;

 private:
  static const std::string*& loading() {
    thread_local const std::string* file = nullptr;
    return file;
  }
  static std::terminate_handler& before() {
    static std::terminate_handler handler = nullptr;
    return handler;
  }
  [[noreturn]] static void terminated() {
    if (loading() != nullptr && std::current_exception() != nullptr) {
      const std::string line = "stowage: error: " + *loading() +
                               ": its static objects threw while it was loaded: " + thrown_text() +
                               "\n";
      static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
      ::_exit(static_cast<int>(ErrorCode::bad_input));
    }
    if (before() != nullptr) before()();
    std::abort();
  }
};

std::atomic<bool>& any_loaded() {
  static std::atomic<bool> any = false;
  return any;
}

Result<const PluginDescriptor*> open_plugin(const std::string& path, const std::string& file) {
  const LoadingNamed named(file);
  any_loaded() = true;
  // Now, not lazily: a missing symbol found at its first call would end the process.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return cannot_load(path, file);
  return find_descriptor(library, file);
}

class PluginModel final : public Model {
 public:
  PluginModel(std::string file, std::unique_ptr<Model> model)
      : file_(std::move(file)), model_(std::move(model)) {}

  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return run_user_code(file_ + ": its parameters()", [&] { return model_->parameters(); });
  }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override {
    return run_user_code(file_ + ": its buffers()", [&] { return model_->buffers(); });
  }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override {
    return run_user_code(file_ + ": its inputs()", [&] { return model_->inputs(); });
  }
  void load_batch(std::int64_t seed) override {
    run_user_code(file_ + ": its load_batch()", [&] { model_->load_batch(seed); });
  }
  BackwardRoot forward() override {
    BackwardRoot root = run_user_code(file_ + ": its forward()", [&] { return model_->forward(); });
    TORCH_CHECK(root.tensor.defined(), file_, ": its forward() returned an undefined tensor");
    TORCH_CHECK(root.tensor.requires_grad(), file_,
                ": its forward() returned a tensor that depends on no parameter");
    TORCH_CHECK(root.gradient.defined() || root.tensor.numel() == 1, file_,
                ": its forward() returned a tensor of sizes ", root.tensor.sizes(),
                " and no gradient for it");
    return root;
  }

 private:
  std::string file_;
  std::unique_ptr<Model> model_;
};

Result<std::unique_ptr<Model>> make(const ModelSpec& spec, c10::Device device, at::ScalarType dtype,
                                    std::int64_t seed, const PluginDescriptor& plugin) {
  Result<std::unique_ptr<Model>> made = plugin.make(spec, device, dtype, seed);
  if (!made) {
    Error error = std::move(made).error();
    if (error.file.empty()) error.file = spec.file();
    return error;
  }
  if (*made == nullptr) return bad_plugin(spec.file(), "it made no model");
  auto model = std::make_unique<PluginModel>(spec.file(), std::move(made).value());
  if (std::optional<Error> error = check_model(*model, device)) {
    error->file = spec.file();
    return *error;
  }
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<const PluginDescriptor*> load_plugin(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(file, failed);
  if (failed) return bad_plugin(file, "cannot open it: " + failed.message());
  if (!std::filesystem::is_regular_file(path, failed)) {
    return bad_plugin(file, "it is not a file");
  }
  static std::mutex mutex;
  static auto* const loaded = new std::map<std::string, const PluginDescriptor*>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = loaded->find(path.string()); found != loaded->end()) return found->second;
  Result<const PluginDescriptor*> plugin = open_plugin(path.string(), file);
  if (plugin) loaded->emplace(path.string(), *plugin);
  return plugin;
}

bool is_plugin_loaded() {
  return any_loaded();
}

Result<ModelInfo> plugin_info(const ModelSpec& spec) {
  Result<const PluginDescriptor*> plugin = load_plugin(spec.file());
  if (!plugin) return plugin.error();
  ModelInfo info;
  try {
    info = (*plugin)->info();
  } catch (...) {
    return bad_plugin(spec.file(), "its info function threw: " + thrown_text());
  }
  if (info.default_batch < 1) {
    return bad_plugin(spec.file(), "its default batch is " + std::to_string(info.default_batch),
                      "set ModelInfo::default_batch to 1 or more");
  }
  info.name = spec.name;
  return info;
}

Result<ModelSpec> complete_plugin_spec(const ModelSpec& spec) {
  Result<ModelInfo> info = plugin_info(spec);
  if (!info) return info.error();
  const OptionReader reader(*info, spec);
  if (reader.error()) return *reader.error();
  ModelSpec complete = spec;
  if (complete.batch == 0) complete.batch = info->default_batch;
  for (const ModelOption& option : info->options) {
    if (!option.default_value.empty()) {
      complete.options.emplace(option.name, option.default_value);
    }
  }
  return complete;
}

Result<std::unique_ptr<Model>> make_plugin_model(const ModelSpec& spec, c10::Device device,
                                                 at::ScalarType dtype, std::int64_t seed) {
  Result<const PluginDescriptor*> plugin = load_plugin(spec.file());
  if (!plugin) return plugin.error();
  try {
    return make(spec, device, dtype, seed, **plugin);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return bad_plugin(spec.file(), "making its model threw: " + thrown_text());
  }
}

}  // namespace stowage::executor
