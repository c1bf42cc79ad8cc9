// LayerLog: where each layer of a running step begins and ends, and how many tensors of one size
// live there.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/step_driver.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {

class LayerLog final : public StepDriver, public AllocationListener {
 public:
  // Counts the tensors of `bytes` that are made from here on.
  explicit LayerLog(Bytes bytes) : bytes_(bytes), installed_(*this) {
    test_device().set_listener(this);
  }
  ~LayerLog() override { test_device().set_listener(nullptr); }
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(LayerEvent event, std::string_view path) override {
    static constexpr const char* kNames[] = {"<", ">", "[", "]"};
    rows.push_back(kNames[static_cast<std::size_t>(event)] + std::string(path));
    live[rows.back()] = live_;
  }
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(UpdateEvent, const at::Tensor&) override {}
  void on_alloc(const AllocationEvent& event) override {
    live_ += event.bytes == bytes_;
    most = std::max(most, live_);
  }
  void on_free(const AllocationEvent& event) override { live_ -= event.bytes == bytes_; }

  // "<layer" and ">layer" in forward, "[layer" and "]layer" in backward, in order.
  std::vector<std::string> rows;
  std::map<std::string, int> live;  // by such a row: tensors that lived there
  int most = 0;                     // at once

 private:
  Bytes bytes_;
  int live_ = 0;
  InstalledDriver installed_;
};

}  // namespace stowage::executor
