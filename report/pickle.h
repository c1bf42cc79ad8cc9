// Writes values as a Python pickle, protocol 4, with data opcodes alone (no GLOBAL, no REDUCE):
// reading it runs no code. Everything the memory views of PyTorch read: dicts, lists, strings,
// integers. https://github.com/python/cpython/blob/main/Lib/pickletools.py describes the opcodes.
//
//   Pickle p;
//   p.begin_dict(); p.text("segments"); p.begin_list(); p.end_list(); p.end_dict();
//   const std::string bytes = p.finish();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stowage::report {

// Calls must nest properly; a dict holds keys and values in turn. Cost: O(output).
class Pickle {
 public:
  Pickle();

  void begin_dict();
  void end_dict();
  // Items are appended in batches, since readers hold a batch on their stack.
  void begin_list();
  void end_list();
  void number(std::int64_t value);
  // Bytes that are no UTF-8 become U+FFFD.
  void text(std::string_view value);

  // A value that stands at several places is written once: remember() the one that was just
  // written, recall() it instead of writing it again.
  [[nodiscard]] std::uint32_t remember();
  void recall(std::uint32_t id);

  [[nodiscard]] std::string finish();

 private:
  void item();
  void byte(unsigned value) { out_.push_back(static_cast<char>(value)); }
  void little_endian(std::uint64_t value, int bytes);

  struct Open {
    bool is_list = false;
    std::int64_t items = 0;  // in the batch
  };
  std::string out_;
  std::vector<Open> open_;
  std::uint32_t memo_ = 0;
};

}  // namespace stowage::report
