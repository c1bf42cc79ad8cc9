#include "report/svg_writer.h"

#include <cstdio>
#include <utility>

#include "report/text_escape.h"

namespace stowage::report {
namespace {

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + svg_number(value) + "\"";
}

}  // namespace

std::string svg_number(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f", value);
  std::string text = buffer;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

SvgWriter::SvgWriter(int width, int height) {
  const std::string size = std::to_string(width) + "\" height=\"" + std::to_string(height);
  const std::string box = std::to_string(width) + " " + std::to_string(height);
  out_ =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"" +
      size + "\" viewBox=\"0 0 " + box +
      "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n";
  rectangle(0, 0, width, height, "fill=\"#fff\"");
}

void SvgWriter::rectangle(double x, double y, double width, double height,
                          std::string_view attributes, std::string_view tip) {
  out_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
          attribute("height", height) + " ";
  out_ += attributes;
  if (tip.empty()) {
    out_ += "/>\n";
    return;
  }
  out_ += "><title>" + xml_escaped(tip) + "</title></rect>\n";
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  out_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
          attribute("y2", y2) + " ";
  out_ += attributes;
  out_ += "/>\n";
}

void SvgWriter::path(std::string_view data, std::string_view attributes) {
  out_ += "<path d=\"";
  out_ += data;
  out_ += "\" ";
  out_ += attributes;
  out_ += "/>\n";
}

void SvgWriter::text(double x, double y, std::string_view text, std::string_view attributes) {
  out_ += "<text" + attribute("x", x) + attribute("y", y);
  if (!attributes.empty()) out_ += " ";
  out_ += attributes;
  out_ += ">" + xml_escaped(text) + "</text>\n";
}

std::string SvgWriter::finish() {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace stowage::report
