#include "profiler/cupti/activity_recorder.h"

#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "profiler/cupti/buffer_pool.h"
#include "profiler/cupti/cupti_error.h"
#include "profiler/cupti/recorded_calls.h"

namespace stowage::profiler {

namespace {

constexpr std::uint32_t kMajor = 13;
constexpr std::uint32_t kVersionsPerMajor = 10000;  // 130001 is 13.0.1
constexpr std::uint32_t kVersionsPerMinor = 100;
constexpr std::int64_t kClockTolerance = 1'000'000;

constexpr std::array kKinds = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
};

void CUPTIAPI on_request(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *buffer = buffer_pool().take();
  *size = *buffer == nullptr ? 0 : BufferPool::kBytes;
  *records = 0;  // as many as fit
}

void CUPTIAPI on_complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  buffer_pool().give_back(buffer, valid);
}

// Subscribing is what keeps others out; no callback is enabled.
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

Error environment(const std::string& message, const std::string& hint) {
  return {ErrorCode::environment, message, "", "", hint};
}

Result<std::uint32_t> loaded_version() {
  std::uint32_t version = 0;
  if (Status status = cupti_status(cuptiGetVersion(&version), "cuptiGetVersion"); !status) {
    return status.error();
  }
  return version;
}

Status check_version() {
  const Result<std::uint32_t> version = loaded_version();
  if (!version) return version.error();
  if (*version / kVersionsPerMajor == kMajor) return Unit{};
  return environment(
      "CUPTI " + cupti_library() + " is not version 13, whose records this build reads",
      "use the CUPTI that comes with LibTorch: look at LD_LIBRARY_PATH");
}

// The last four names: which package it came with, and nothing of whose machine it is (traces are
// passed on).
std::string end_of_path(std::string path) {
  std::size_t at = path.size();
  for (int names = 0; names < 4 && at != std::string::npos && at > 0; ++names) {
    at = path.rfind('/', at - 1);
  }
  return at == std::string::npos ? path : path.substr(at + 1);
}

std::int64_t realtime_ns() {
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Status check_clock() {
  const std::int64_t before = realtime_ns();
  std::uint64_t stamp = 0;
  if (Status status = cupti_status(cuptiGetTimestamp(&stamp), "cuptiGetTimestamp"); !status) {
    return status;
  }
  const std::int64_t after = realtime_ns();
  const auto time = static_cast<std::int64_t>(stamp);
  if (time >= before - kClockTolerance && time <= after + kClockTolerance) return Unit{};
  return environment(
      "CUPTI's clock is " + std::to_string(time - before) + " ns away from CLOCK_REALTIME",
      "another tool of this process gave CUPTI a clock of its own");
}

Status subscribe() {
  static CUpti_SubscriberHandle handle = nullptr;
  std::array<char, 2 * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> other{};
  CUpti_SubscriberParams parameters{};
  parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  parameters.subscriberName = "stowage";
  parameters.oldSubscriberName = other.data();
  parameters.oldSubscriberSize = other.size();
  const CUptiResult code = cuptiSubscribe_v2(&handle, &on_callback, nullptr, &parameters);
  if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    other.back() = '\0';
    const std::string name = other.front() == '\0' ? "another tool" : other.data();
    return environment("the GPU's records are already taken by " + name,
                       "only one profiler a process: run without it");
  }
  return cupti_status(code, "cuptiSubscribe_v2");
}

CUptiResult set_flag(CUpti_ActivityAttribute attribute) {
  std::uint8_t on = 1;
  std::size_t size = sizeof on;
  return cuptiActivitySetAttribute(attribute, &size, &on);
}

// Seen on an H200 with CUPTI 13.0: a choice of calls made after the context exists gives no records
// at all, silently, while whole kinds can be switched on at any time.
Status enable_calls() {
  const auto runtime = [](CUpti_CallbackId call) {
    return cupti_status(cuptiActivityEnableRuntimeApi(call, 1), "cuptiActivityEnableRuntimeApi");
  };
  const auto driver = [](CUpti_CallbackId call) {
    return cupti_status(cuptiActivityEnableDriverApi(call, 1), "cuptiActivityEnableDriverApi");
  };
  Status status = Unit{};
  const auto enable = [&status](const auto& calls, const auto& one) {
    for (const auto call : calls) {
      if (status) status = one(call);
    }
  };
  enable(kRuntimeLaunches, runtime);
  enable(kRuntimeWaits, runtime);
  enable(kDriverLaunches, driver);
  enable(kDriverWaits, driver);
  return status;
}

class CuptiRecorder final : public ActivityRecorder {
 public:
  explicit CuptiRecorder(bool records_all_calls) : kinds_(kKinds.begin(), kKinds.end()) {
    if (!records_all_calls) return;
    kinds_.push_back(CUPTI_ACTIVITY_KIND_RUNTIME);
    kinds_.push_back(CUPTI_ACTIVITY_KIND_DRIVER);
  }

  Status start() override {
    for (const auto kind : kinds_) {
      if (Status status = cupti_status(cuptiActivityEnable(kind), "cuptiActivityEnable"); !status) {
        return status;
      }
    }
    recording_.store(true, std::memory_order_release);
    return Unit{};
  }

  Result<RawActivities> stop() override {
    recording_.store(false, std::memory_order_release);
    for (const auto kind : kinds_) {
      if (Status status = cupti_status(cuptiActivityDisable(kind), "cuptiActivityDisable");
          !status) {
        return status.error();
      }
    }
    if (Status status = cupti_status(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                                     "cuptiActivityFlushAll");
        !status) {
      return status.error();
    }
    std::size_t dropped = 0;
    if (Status status = cupti_status(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped),
                                     "cuptiActivityGetNumDroppedRecords");
        !status) {
      return status.error();
    }
    Result<RawActivities> records = buffer_pool().take_records();
    if (!records) return records;
    records->dropped_records = static_cast<std::int64_t>(dropped);
    records->library = cupti_library();
    return records;
  }

  void push(std::int64_t id) override {
    if (!recording_.load(std::memory_order_acquire)) return;
    cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2,
                                           static_cast<std::uint64_t>(id));
  }

  void pop() override {
    if (!recording_.load(std::memory_order_acquire)) return;
    std::uint64_t last = 0;
    cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &last);
  }

 private:
  std::vector<CUpti_ActivityKind> kinds_;
  std::atomic<bool> recording_{false};
};

}  // namespace

std::string cupti_library() {
  const Result<std::uint32_t> version = loaded_version();
  std::string text = "unknown";
  if (version) {
    text = std::to_string(*version / kVersionsPerMajor) + "." +
           std::to_string(*version % kVersionsPerMajor / kVersionsPerMinor) + "." +
           std::to_string(*version % kVersionsPerMinor);
  }
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&cuptiGetVersion), &info) != 0 &&
      info.dli_fname != nullptr) {
    text += " (" + end_of_path(info.dli_fname) + ")";
  }
  return text;
}

Result<std::unique_ptr<ActivityRecorder>> ActivityRecorder::create(bool cuda_has_started) {
  if (std::getenv("KINETO_USE_DAEMON") != nullptr) {
    return environment("KINETO_USE_DAEMON is set: LibTorch's own profiler takes the GPU's records",
                       "unset KINETO_USE_DAEMON");
  }
  if (Status status = check_version(); !status) return status.error();
  if (Status status = subscribe(); !status) return status.error();
  // A device that cannot (confidential computing) keeps its buffers in device memory: the peak of
  // this pass is then larger than the step's, and nothing else.
  // Likewise where buffers exist already.
  const CUptiResult pinned = set_flag(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
  if (pinned != CUPTI_ERROR_NOT_SUPPORTED && !cuda_has_started) {
    if (Status status = cupti_status(pinned, "buffers in host memory"); !status) {
      return status.error();
    }
  }
  if (Status status = cupti_status(set_flag(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER),
                                   "a buffer for each thread");
      !status) {
    return status.error();
  }
  if (Status status = cupti_status(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM),
                                   "cuptiSetThreadIdType");
      !status) {
    return status.error();
  }
  if (Status status = cupti_status(cuptiActivityRegisterCallbacks(&on_request, &on_complete),
                                   "cuptiActivityRegisterCallbacks");
      !status) {
    return status.error();
  }
  if (!cuda_has_started) {
    if (Status status = enable_calls(); !status) return status.error();
  }
  if (Status status = check_clock(); !status) return status.error();
  return std::unique_ptr<ActivityRecorder>(std::make_unique<CuptiRecorder>(cuda_has_started));
}

}  // namespace stowage::profiler
