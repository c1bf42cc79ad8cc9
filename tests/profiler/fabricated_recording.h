// Raw records written by hand: both passes of a recording, event by event, without LibTorch. In the
// structure pass events are 10 ns apart; the offload_all pass has serials and a clock of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiler/assembly/raw_pass.h"

namespace stowage::testing {

class FabricatedRecording {
 public:
  FabricatedRecording();

  // Serial of the structure pass. What exists must come ahead of everything else.
  std::int64_t existing(Bytes bytes, StorageClass storage_class = StorageClass::parameter);
  std::int64_t alloc(Bytes bytes);
  // Freed in the structure pass, in the offload_all pass, in both.
  void free(std::int64_t serial);
  void let_go(std::int64_t serial);
  void free_in_both(std::int64_t serial);

  void begin_layer(const std::string& path) { layer(profiler::RawKind::layer_forward_begin, path); }
  void end_layer(const std::string& path) { layer(profiler::RawKind::layer_forward_end, path); }
  void begin_layer_backward(const std::string& path) {
    layer(profiler::RawKind::layer_backward_begin, path);
  }
  void end_layer_backward(const std::string& path) {
    layer(profiler::RawKind::layer_backward_end, path);
  }
  // Rows of ops. Only the outermost op has an end.
  std::int32_t begin_op(const std::string& name, std::int64_t sequence = -1,
                        std::int64_t backward_sequence = -1);
  void end_op();
  // The running outermost op uses all of `serial`, as float32.
  void use(std::int64_t serial, UseMode mode = UseMode::read);

  // Saves all of `serial`, as float32, at the innermost open layer; row of saved.
  std::int64_t pack(std::int64_t serial, std::int64_t version = 0);
  std::int64_t unpack(std::int64_t saved);
  void release(std::int64_t unpack);  // what the unpack handed out dies here
  void begin_backward() { both(profiler::RawKind::backward_begin, -1); }
  void end_backward() { both(profiler::RawKind::backward_end, -1); }
  void accumulate(std::int64_t serial);
  void is_gradient(std::int64_t serial, std::int64_t parameter = -1) {
    structure_.gradients.push_back({serial, parameter});
  }

  // Ends the step; the clean step takes `clean_step_ns`. Call once.
  profiler::RawRecording finish(Nanoseconds clean_step_ns);

  // Rows of events so far, in the structure pass.
  [[nodiscard]] std::int32_t next_event() const {
    return static_cast<std::int32_t>(structure_.events.size());
  }

 private:
  struct Call {
    std::string path;
    std::int32_t call = 0;
    std::int32_t packs = 0;
  };

  void add(profiler::RawPass& pass, profiler::RawKind kind, std::int64_t id, Bytes bytes = 0);
  void both(profiler::RawKind kind, std::int64_t id);
  void layer(profiler::RawKind kind, const std::string& path);
  std::int32_t path_row(const std::string& path);
  profiler::RawView whole(std::int64_t serial) const;

  profiler::RawPass structure_;
  profiler::RawPass offload_all_;
  std::map<std::int64_t, Bytes> bytes_;
  std::map<std::string, std::int32_t> calls_;
  std::vector<Call> open_layers_;
  std::vector<std::int32_t> open_ops_;
  Bytes live_ = 0;
  std::int64_t next_serial_ = 1;
};

// The serial of the same allocation in the offload_all pass.
inline constexpr std::int64_t kOtherSerials = 100'000;

}  // namespace stowage::testing
