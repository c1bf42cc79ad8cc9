// A row of values that does not change any more and that several owners hold together: a copy is
// one more owner, not a second row. So the curves of two steps take the bytes of one as far as they
// are the same. Reads like a vector; safe to share between threads.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace stowage::gui {

template <class T>
class SharedColumn {
 public:
  using const_iterator = typename std::vector<T>::const_iterator;

  SharedColumn() : SharedColumn(std::vector<T>()) {}
  // Gives back what the vector has reserved beyond its size.
  SharedColumn(std::vector<T> values) : values_(made_of(std::move(values))) {}

  [[nodiscard]] std::size_t size() const { return values_->size(); }
  [[nodiscard]] bool empty() const { return values_->empty(); }
  [[nodiscard]] const T& operator[](std::size_t row) const { return (*values_)[row]; }
  [[nodiscard]] const_iterator begin() const { return values_->begin(); }
  [[nodiscard]] const_iterator end() const { return values_->end(); }
  // Both hold the very same row of values. O(1).
  [[nodiscard]] bool shares_with(const SharedColumn& other) const {
    return values_ == other.values_;
  }
  // Equal values.
  friend bool operator==(const SharedColumn& a, const SharedColumn& b) {
    return a.values_ == b.values_ || *a.values_ == *b.values_;
  }

 private:
  static std::shared_ptr<const std::vector<T>> made_of(std::vector<T> values) {
    values.shrink_to_fit();
    return std::make_shared<const std::vector<T>>(std::move(values));
  }

  std::shared_ptr<const std::vector<T>> values_;  // null only when moved from: then it is not read
};

}  // namespace stowage::gui
