#include "executor/user_code.h"

#include <exception>

#include "executor/device/first_line.h"

namespace stowage::executor {

std::string thrown_text() {
  try {
    throw;
  } catch (const c10::Error& error) {
    return first_line(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return first_line(error.what());
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace stowage::executor
