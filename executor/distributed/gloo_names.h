// The names of Gloo's that torch/csrc/distributed/c10d/ProcessGroupGloo.hpp mentions. LibTorch has
// Gloo inside and c10d's group of it is exported, but the package leaves Gloo's own headers out.
//
// That header holds Gloo's objects behind pointers alone, and the code that touches them is
// LibTorch's: no size, layout or virtual table of Gloo's is taken from here. What must not be used
// with these names: ProcessGroupGloo::GlooStore, the one class that derives from one of them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {

class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace rendezvous

namespace transport {

class Device;
class UnboundBuffer;

}  // namespace transport

}  // namespace gloo
