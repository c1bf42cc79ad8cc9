#include "cli/progress_bar.h"

#include <algorithm>
#include <cstdio>

namespace stowage::cli {

namespace {
constexpr std::int64_t kCells = 20;
constexpr std::int64_t kLeastCells = 5;
}  // namespace

ProgressBar::ProgressBar(std::ostream& err, bool enabled, std::string title, std::string unit,
                         int columns)
    : err_(err),
      enabled_(enabled),
      title_(std::move(title)),
      unit_(std::move(unit)),
      columns_(columns),
      begin_(Clock::now()),
      last_(begin_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) err_ << "\r\x1b[K" << std::flush;
}

std::string ProgressBar::line(const std::string& title, std::int64_t done, std::int64_t total,
                              double seconds, const std::string& unit, const std::string& remark,
                              int width) {
  const std::int64_t all = std::max<std::int64_t>(total, 1);
  const std::int64_t part = std::clamp<std::int64_t>(done, 0, all);
  const double rate = seconds > 0 ? static_cast<double>(part) / seconds : 0;
  const double left = rate > 0 ? static_cast<double>(all - part) / rate : 0;
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "] %3lld %%, %.0f %s/s, at most %.0f s left",
                static_cast<long long>(100 * part / all), rate, unit.c_str(), left);
  const auto most = static_cast<std::int64_t>(std::max(width, 0));
  const auto length = [](const std::string& text) {
    return static_cast<std::int64_t>(text.size());
  };
  std::string end = numbers;
  if (!remark.empty()) end += ", " + remark;
  const std::int64_t others = length(title) + 2;
  if (others + kLeastCells + length(end) > most) end = numbers;
  const std::int64_t cells = std::clamp(most - others - length(end), kLeastCells, kCells);
  const auto filled = static_cast<std::size_t>(cells * part / all);
  const std::string text = title + " [" + std::string(filled, '#') +
                           std::string(static_cast<std::size_t>(cells) - filled, ' ') + end;
  return text.substr(0, static_cast<std::size_t>(most));
}

void ProgressBar::update(std::int64_t done, std::int64_t total, const std::string& remark) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now - begin_ < std::chrono::seconds(1)) return;
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  err_ << "\r\x1b[K" << line(title_, done, total, seconds, unit_, remark, columns_ - 1)
       << std::flush;
}

}  // namespace stowage::cli
