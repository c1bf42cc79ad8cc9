// Elements of an SVG document as text.
#pragma once

#include <string>
#include <string_view>

namespace stowage::report {

// "12.5": two decimals at most.
[[nodiscard]] std::string svg_number(double value);

class SvgWriter {
 public:
  SvgWriter(int width, int height);

  // Attributes are given as they stand ("fill=\"none\""); `text` and `tip` are escaped here.
  void rectangle(double x, double y, double width, double height, std::string_view attributes,
                 std::string_view tip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  void path(std::string_view data, std::string_view attributes);
  void text(double x, double y, std::string_view text, std::string_view attributes = {});

  [[nodiscard]] std::string finish();

 private:
  std::string out_;
};

}  // namespace stowage::report
