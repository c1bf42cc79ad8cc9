// One line on a terminal's stderr that is drawn over and over: only after the first second, at most
// ten times a second, and gone when the work is done.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace stowage::cli {

class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  // `enabled` false: nothing is ever written. `unit` follows the rate ("plans"). `columns`: of the
  // terminal; the line leaves the last one free, so that it does not wrap.
  ProgressBar(std::ostream& err, bool enabled, std::string title, std::string unit, int columns);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of at most `total`; `remark` ends the line. The time left assumes the rate so far.
  void update(std::int64_t done, std::int64_t total, const std::string& remark);

  // The line, without control characters, of at most `width` columns: where these are few the bar
  // is shorter, then the remark is left out, then the end. Public for its test.
  [[nodiscard]] static std::string line(const std::string& title, std::int64_t done,
                                        std::int64_t total, double seconds, const std::string& unit,
                                        const std::string& remark, int width);

 private:
  std::ostream& err_;
  bool enabled_;
  std::string title_;
  std::string unit_;
  int columns_;
  Clock::time_point begin_;
  Clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace stowage::cli
