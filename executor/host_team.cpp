#include "executor/host_team.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "executor/device/host_work.h"

namespace stowage::executor {

namespace {

// glibc returns what is freed to the system at once, until as large a block came and went: then
// temporaries (of parts: 128 KiB) are pages that are there already.
constexpr std::int64_t kKeptBytes = std::int64_t{4} << 20;

// On this thread no op is divided among others, however small its pieces would be (sqrt's have 2048
// elements). at::set_num_threads() would say so to every thread that begins meanwhile; what it says
// to its own thread alone is OpenMP's and MKL's, which PyTorch brings along.
void keep_ops_on_this_thread() {
  static_cast<void>(at::get_num_threads());  // the first call on a thread sets it
  using SetOpenMp = void (*)(int);
  using SetMkl = int (*)(int);
  const auto open_mp = reinterpret_cast<SetOpenMp>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const auto mkl = reinterpret_cast<SetMkl>(dlsym(RTLD_DEFAULT, "MKL_Set_Num_Threads_Local"));
  if (open_mp != nullptr) open_mp(1);
  if (mkl != nullptr) static_cast<void>(mkl(1));
}

// Parts that nobody has begun yet, one after the other. What a thread is told is its own.
class Rest {
 public:
  Rest(const HostParts& parts, const std::function<void(const HostTensors&)>& update)
      : parts_(parts), update_(update) {}

  void work() {
    const HostWorkGuard host_work;
    const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
    const at::NoGradGuard no_graph;
    try {
      for (std::int64_t i = next_++; i < parts_.count(); i = next_++) update_(parts_.part(i));
    } catch (...) {
      next_ = parts_.count();
      if (!has_thrown_.exchange(true)) thrown_ = std::current_exception();
    }
  }
  // Behind all work().
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const HostParts& parts_;
  const std::function<void(const HostTensors&)>& update_;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> has_thrown_ = false;
  std::exception_ptr thrown_;
};

// Nobody works any more on what goes with this scope, however it is left.
struct BehindAll {
  c10::ThreadPool& pool;
  ~BehindAll() { pool.waitWorkComplete(); }
};

}  // namespace

c10::ThreadPool& HostTeam::of_threads(int count) {
  if (pool_ == nullptr || pool_->size() != static_cast<std::size_t>(count)) {
    pool_ = std::make_unique<c10::ThreadPool>(count, /*numa_node_id=*/-1, keep_ops_on_this_thread);
    const HostWorkGuard host_work;
    static_cast<void>(at::empty({kKeptBytes}, at::kByte));
  }
  return *pool_;
}

void HostTeam::for_each(const HostParts& parts,
                        const std::function<void(const HostTensors&)>& update) {
  Rest rest(parts, update);
  const std::int64_t count = std::min<std::int64_t>(parts.count(), at::get_num_threads());
  if (count == 1) {
    rest.work();
  } else {
    const std::lock_guard lock(mutex_);
    c10::ThreadPool& pool = of_threads(at::get_num_threads());
    const BehindAll behind_all{pool};
    for (std::int64_t i = 0; i < count; ++i) pool.run([&] { rest.work(); });
  }
  rest.rethrow();
}

}  // namespace stowage::executor
