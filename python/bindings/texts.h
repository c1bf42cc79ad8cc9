// Texts of the library as Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace stowage::python {

// Foreign names may hold bytes that are no UTF-8: each becomes U+FFFD.
[[nodiscard]] nanobind::str text_of(std::string_view text);

// For people: no control character but line breaks.
[[nodiscard]] nanobind::str shown(const std::string& text);

[[nodiscard]] nanobind::bytes bytes_of(const std::string& text);

}  // namespace stowage::python
