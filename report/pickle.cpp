#include "report/pickle.h"

#include "report/text_escape.h"
#include "traces/result.h"

namespace stowage::report {
namespace {

constexpr std::int64_t kBatch = 1000;  // as Python's own writer

}  // namespace

Pickle::Pickle() {
  byte(0x80);  // PROTO
  byte(4);
}

void Pickle::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) byte(static_cast<unsigned>(value >> (8 * i)) & 0xFFU);
}

// Ahead of every value: a batch that is full is closed, a new one is opened.
void Pickle::item() {
  if (open_.empty()) return;
  Open& top = open_.back();
  // Of a dict a batch ends behind a value.
  const std::int64_t full = top.is_list ? kBatch : 2 * kBatch;
  if (top.items == full) {
    byte(top.is_list ? 'e' : 'u');  // APPENDS, SETITEMS
    top.items = 0;
  }
  if (top.items++ == 0) byte('(');  // MARK
}

void Pickle::begin_dict() {
  item();
  byte('}');
  open_.push_back({false, 0});
}

void Pickle::end_dict() {
  STOWAGE_ASSERT(!open_.empty() && !open_.back().is_list && open_.back().items % 2 == 0);
  if (open_.back().items > 0) byte('u');
  open_.pop_back();
}

void Pickle::begin_list() {
  item();
  byte(']');
  open_.push_back({true, 0});
}

void Pickle::end_list() {
  STOWAGE_ASSERT(!open_.empty() && open_.back().is_list);
  if (open_.back().items > 0) byte('e');
  open_.pop_back();
}

void Pickle::number(std::int64_t value) {
  item();
  if (value >= 0 && value < 256) {
    byte('K');
    byte(static_cast<unsigned>(value));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    byte('J');
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    byte(0x8A);  // LONG1
    byte(8);
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void Pickle::text(std::string_view value) {
  item();
  const std::string utf8 = valid_utf8(value);
  byte('X');  // BINUNICODE
  little_endian(utf8.size(), 4);
  out_ += utf8;
}

std::uint32_t Pickle::remember() {
  byte(0x94);  // MEMOIZE
  return memo_++;
}

void Pickle::recall(std::uint32_t id) {
  item();
  byte('j');  // LONG_BINGET
  little_endian(id, 4);
}

std::string Pickle::finish() {
  STOWAGE_ASSERT(open_.empty());
  byte('.');  // STOP
  return std::move(out_);
}

}  // namespace stowage::report
