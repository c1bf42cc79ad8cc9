// An Optimizer that updates one parameter after the other, each between the driver's events; how
// one is updated is the derived class's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/host_team.h"
#include "executor/optimizer.h"

namespace stowage::executor {

class OneByOne : public Optimizer {
 public:
  void step() final;
  void step_of(std::size_t parameter) final;
  void step_on_host(std::size_t parameter, const HostTensors& tensors) final;
  void update_through_host(const std::vector<at::Tensor>& parameters) final;
  [[nodiscard]] std::vector<NamedTensor> state() const final;
  [[nodiscard]] std::vector<NamedTensor> written_state() const final;
  void make_state(const std::vector<NamedTensor>& parameters) final;

 protected:
  explicit OneByOne(std::vector<NamedTensor> parameters);

  // All of these are of the parameter of that row, without a graph.
  // A piece of state that no plan has given a home is made as ever.
  virtual void update(std::size_t parameter) = 0;
  // Of a part of it (executor/host_parts.h), as many updates done as are counted. For several parts
  // at once.
  virtual void update_on_host(std::size_t parameter, const HostTensors& part) const = 0;
  // Behind all parts: one more is done.
  virtual void count_update_on_host(std::size_t parameter) = 0;
  // Appends its state, as far as there is some.
  virtual void add_state(std::size_t parameter, std::vector<NamedTensor>& state) const = 0;
  // Makes its state where there is none, without memory.
  virtual void make_state_of(std::size_t parameter) = 0;
  // Ahead of an update on the host: the state is there, with memory.
  virtual void prepare_state(std::size_t parameter) = 0;

  [[nodiscard]] const NamedTensor& parameter(std::size_t row) const { return parameters_[row]; }
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  void update_through_host(std::size_t parameter);

  std::vector<NamedTensor> parameters_;
  std::vector<bool> through_host_;        // by parameter
  std::vector<std::uint8_t> is_updated_;  // by parameter
  HostTeam host_team_;
};

}  // namespace stowage::executor
