#include "executor/models/script_layers.h"

#include <ATen/core/class_type.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/layer.h"

namespace stowage::executor {

namespace {

namespace jit = torch::jit;
using c10::IValue;

const char* const kCall = "stowage::call_layer";

// Names of all submodules that live, by object. Backward may run on other threads.
class Paths {
 public:
  void add(const void* object, const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    paths_.emplace(object, path);  // of a module with two names the first
  }
  void remove(const void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    paths_.erase(object);
  }
  [[nodiscard]] std::optional<std::string> find(const void* object) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = paths_.find(object);
    if (found == paths_.end()) return std::nullopt;
    return found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::string> paths_;
};

Paths& paths() {
  static auto* const leaked = new Paths;
  return *leaked;
}

bool is_tensor(const IValue& value) {
  return value.isTensor() && value.toTensor().defined();
}

IValue call(jit::Function& method, std::vector<IValue> arguments) {
  const PlainScripts plain;
  method.run(arguments);
  return std::move(arguments.back());
}

// Runs object.method(arguments) as the layer `path`.
IValue call_layer(const std::string& path, jit::Function& method, std::vector<IValue> arguments) {
  std::vector<at::Tensor> tensors;
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!is_tensor(arguments[i])) continue;
    tensors.push_back(std::move(arguments[i]).toTensor());
    arguments[i] = IValue();
    places.push_back(i);
  }
  // Of a tuple, what of it does not pass the boundary. Of the first call: who calls the layer again
  // asks for its tensors alone.
  struct Rest {
    std::vector<IValue> elements;
    std::vector<std::size_t> passing;  // places of those that do
    bool is_tuple = false;
    bool is_wanted = true;
  };
  const auto rest = std::make_shared<Rest>();
  const LayerFn run = [&method, arguments = std::move(arguments), places,
                       rest](const std::vector<at::Tensor>& inputs) {
    std::vector<IValue> given = arguments;
    for (std::size_t k = 0; k < places.size(); ++k) given[places[k]] = inputs[k];
    IValue result = call(method, std::move(given));
    if (!result.isTuple()) return std::vector<at::Tensor>{std::move(result).toTensor()};
    Rest found{.elements = result.toTupleRef().elements().vec(), .passing = {}, .is_tuple = true};
    std::vector<at::Tensor> outputs;
    for (std::size_t i = 0; i < found.elements.size(); ++i) {
      if (!is_tensor(found.elements[i])) continue;
      outputs.push_back(std::exchange(found.elements[i], IValue()).toTensor());
      found.passing.push_back(i);
    }
    if (rest->is_wanted) *rest = std::move(found);
    return outputs;
  };
  std::vector<at::Tensor> outputs = layer(path, run, std::move(tensors));
  rest->is_wanted = false;
  if (!rest->is_tuple) return std::move(outputs.front());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    rest->elements[rest->passing[k]] = std::move(outputs[k]);
  }
  return c10::ivalue::Tuple::create(std::exchange(rest->elements, {}));
}

jit::Operation make_call(const jit::Node* node) {
  return [name = node->s(c10::attr::name), count = node->inputs().size()](jit::Stack& stack) {
    std::vector<IValue> arguments = jit::pop(stack, count);
    const auto& object = arguments.front().toObjectRef();
    jit::Function& method = object.type()->getMethod(name);
    if (const std::optional<std::string> path = paths().find(&object)) {
      stack.push_back(call_layer(*path, method, std::move(arguments)));
    } else {
      stack.push_back(call(method, std::move(arguments)));
    }
  };
}

void register_operator() {
  static const jit::RegisterOperators registered({jit::Operator(
      c10::Symbol::fromQualString(kCall), make_call, c10::AliasAnalysisKind::CONSERVATIVE)});
}

bool has_parameters(const c10::ClassTypePtr& type) {
  for (std::size_t i = 0; i < type->numAttributes(); ++i) {
    if (type->is_parameter(i)) return true;
    const auto attribute = type->getAttribute(i)->cast<c10::ClassType>();
    if (attribute && attribute->is_module() && has_parameters(attribute)) return true;
  }
  return false;
}

bool has_tensor(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  const auto tuple = type->cast<c10::TupleType>();
  if (!tuple) return false;
  for (const c10::TypePtr& element : tuple->elements()) {
    if (element->kind() == c10::TypeKind::TensorType) return true;
  }
  return false;
}

// The graph of the method that a prim::CallMethod calls; null when it is not known here.
std::shared_ptr<jit::Graph> callee(const jit::Node& node) {
  const auto type = node.input(0)->type()->cast<c10::ClassType>();
  if (!type) return nullptr;
  jit::Function* const method = type->findMethod(node.s(c10::attr::name));
  if (method == nullptr || !method->isGraphFunction()) return nullptr;
  method->ensure_defined();
  return jit::toGraphFunction(*method).graph();
}

constexpr int kMostDepth = 32;  // of calls that are followed; deeper ones count as no write

// Whether something writes into the tensor (of a tuple, one of them), or into a view that an op
// makes of it, in place.
bool is_written(const jit::Value* value, int depth = 0) {
  if (depth > kMostDepth) return false;
  for (const jit::Use& use : value->uses()) {
    const jit::Node& node = *use.user;
    if (node.kind() == c10::prim::CallMethod) {
      const auto graph = callee(node);
      if (graph && is_written(graph->inputs()[use.offset], depth + 1)) return true;
      continue;
    }
    if (node.kind() == c10::prim::TupleUnpack || node.kind() == c10::prim::TupleIndex) {
      for (const jit::Value* const element : node.outputs()) {
        if (is_written(element, depth + 1)) return true;
      }
      continue;
    }
    const c10::FunctionSchema* const schema = node.maybeSchema();
    if (schema == nullptr || use.offset >= schema->arguments().size()) continue;
    const c10::AliasInfo* const alias = schema->arguments()[use.offset].alias_info();
    if (alias == nullptr) continue;
    if (alias->isWrite()) return true;
    for (const jit::Value* const view : node.outputs()) {
      if (is_written(view, depth + 1)) return true;
    }
  }
  return false;
}

bool crosses_written_tensor(const jit::Node& node) {
  if (is_written(node.output())) return true;
  const auto graph = callee(node);
  if (!graph) return true;
  for (std::size_t i = 1; i < graph->inputs().size(); ++i) {
    if (is_written(graph->inputs()[i])) return true;
  }
  return false;
}

bool is_layer(const jit::Node& node, const jit::Value* self) {
  if (node.kind() != c10::prim::CallMethod || node.input(0) == self) return false;
  const auto type = node.input(0)->type()->cast<c10::ClassType>();
  return type && type->is_module() && has_parameters(type) && has_tensor(node.output()->type()) &&
         !crosses_written_tensor(node);
}

void collect(jit::Block* block, std::vector<jit::Node*>& nodes) {
  for (jit::Node* const node : block->nodes()) {
    nodes.push_back(node);
    for (jit::Block* const inner : node->blocks()) collect(inner, nodes);
  }
}

void replace(jit::Node* node) {
  jit::Graph& graph = *node->owningGraph();
  jit::Node* const call =
      graph.create(c10::Symbol::fromQualString(kCall), node->inputs(), /*num_outputs=*/1);
  call->s_(c10::attr::name, node->s(c10::attr::name));
  call->output()->setType(node->output()->type());
  call->insertBefore(node);
  node->output()->replaceAllUsesWith(call->output());
  node->destroy();
}

// What tracing on the CPU wrote down. Scalars stay there, as PyTorch's own do.
void move_constant(jit::Node* node, c10::Device device) {
  if (node->kind() != c10::prim::Constant) return;
  if (node->output()->type()->kind() == c10::TypeKind::DeviceObjType) {
    node->s_(c10::attr::value, device.str());
  } else if (node->hasAttribute(c10::attr::value) &&
             node->kindOf(c10::attr::value) == jit::AttributeKind::t &&
             node->t(c10::attr::value).dim() > 0) {
    node->t_(c10::attr::value, node->t(c10::attr::value).to(device));
  }
}

std::set<jit::Graph*> all_graphs(const jit::Module& module) {
  std::set<jit::Graph*> graphs;
  for (const jit::Module& each : module.modules()) {
    for (jit::Function* const method : each.type()->methods()) {
      if (!method->isGraphFunction()) continue;
      method->ensure_defined();
      graphs.insert(jit::toGraphFunction(*method).graph().get());
    }
  }
  return graphs;
}

}  // namespace

ScriptLayers::ScriptLayers(const torch::jit::Module& module, c10::Device device) : module_(module) {
  register_operator();
  for (const auto& [name, each] : module_.named_modules()) {
    if (!name.empty()) paths().add(each._ivalue().get(), name);
  }
  // All are judged before the first is replaced: a replaced call can not be looked into.
  std::vector<jit::Node*> layers;
  for (jit::Graph* const graph : all_graphs(module_)) {
    std::vector<jit::Node*> nodes;
    collect(graph->block(), nodes);
    for (jit::Node* const node : nodes) {
      if (!device.is_cpu()) move_constant(node, device);
      if (is_layer(*node, graph->inputs()[0])) layers.push_back(node);
    }
  }
  for (jit::Node* const node : layers) replace(node);
}

ScriptLayers::~ScriptLayers() {
  for (const jit::Module& each : module_.modules()) paths().remove(each._ivalue().get());
}

at::Tensor first_tensor(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  at::Tensor found;
  const auto look = [&](const IValue& element) {
    if (!found.defined()) found = first_tensor(element);
  };
  if (value.isTuple()) {
    for (const IValue& element : value.toTupleRef().elements()) look(element);
  } else if (value.isList()) {
    for (const IValue& element : value.toListRef()) look(element);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) look(entry.value());
  }
  return found;
}

PlainScripts::PlainScripts()
    : optimized_(torch::jit::getGraphExecutorOptimize()),
      rethrew_(FLAGS_torch_jit_enable_rethrow_caught_exception) {
  torch::jit::setGraphExecutorOptimize(false);
  FLAGS_torch_jit_enable_rethrow_caught_exception = true;
}

PlainScripts::~PlainScripts() {
  torch::jit::setGraphExecutorOptimize(optimized_);
  FLAGS_torch_jit_enable_rethrow_caught_exception = rethrew_;
}

}  // namespace stowage::executor
