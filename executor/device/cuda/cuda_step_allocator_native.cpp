// The part of CudaStepAllocator that is the native allocator's.
#include <utility>

#include "executor/device/cuda/cuda_step_allocator.h"

namespace stowage::executor {

namespace native = c10::cuda::CUDACachingAllocator;

void CudaStepAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  native_.copy_data(to, from, bytes);
}
bool CudaStepAllocator::is_simple_data_ptr(const c10::DataPtr& data) const {
  return native_.is_simple_data_ptr(data);
}
bool CudaStepAllocator::initialized() {
  return native_.initialized();
}
void CudaStepAllocator::emptyCache(c10::MempoolId_t pool) {
  native_.emptyCache(pool);
}
c10::CachingDeviceAllocator::DeviceStats CudaStepAllocator::getDeviceStats(
    c10::DeviceIndex device) {
  return native_.getDeviceStats(device);
}
void CudaStepAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  native_.resetAccumulatedStats(device);
}
void CudaStepAllocator::resetPeakStats(c10::DeviceIndex device) {
  native_.resetPeakStats(device);
}
std::pair<std::size_t, std::size_t> CudaStepAllocator::getMemoryInfo(c10::DeviceIndex device) {
  return native_.getMemoryInfo(device);
}
void CudaStepAllocator::init(int device_count) {
  native_.init(device_count);
}
std::vector<native::StreamSegmentSize> CudaStepAllocator::getExpandableSegmentSizes(
    c10::DeviceIndex device) {
  return native_.getExpandableSegmentSizes(device);
}
void CudaStepAllocator::enable(bool value) {
  native_.enable(value);
}
bool CudaStepAllocator::isEnabled() const {
  return native_.isEnabled();
}
void CudaStepAllocator::cacheInfo(c10::DeviceIndex device, std::size_t* largest) {
  native_.cacheInfo(device, largest);
}
native::SnapshotInfo CudaStepAllocator::snapshot(c10::MempoolId_t pool, bool include_traces) {
  return native_.snapshot(pool, include_traces);
}
void CudaStepAllocator::releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  native_.releasePool(device, pool);
}
int CudaStepAllocator::getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) {
  return native_.getPoolUseCount(device, pool);
}
void CudaStepAllocator::createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                           std::shared_ptr<CUDAAllocator> allocator) {
  native_.createOrIncrefPool(device, pool, std::move(allocator));
}
void CudaStepAllocator::setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool,
                                    bool use_on_oom) {
  native_.setUseOnOOM(device, pool, use_on_oom);
}
void CudaStepAllocator::setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) {
  native_.setNoSplit(device, pool);
}
bool CudaStepAllocator::checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                                 const std::unordered_set<void*>& expected) {
  return native_.checkPoolLiveAllocations(device, pool, expected);
}
std::shared_ptr<void> CudaStepAllocator::getIpcDevPtr(std::string handle) {
  return native_.getIpcDevPtr(std::move(handle));
}
bool CudaStepAllocator::isHistoryEnabled() {
  return native_.isHistoryEnabled();
}
void CudaStepAllocator::recordHistory(bool enabled,
                                      c10::CachingDeviceAllocator::CreateContextFn recorder,
                                      std::size_t most,
                                      c10::CachingDeviceAllocator::RecordContext when, bool clear,
                                      const std::vector<std::string>& skipped) {
  native_.recordHistory(enabled, recorder, most, when, clear, skipped);
}
void CudaStepAllocator::recordAnnotation(
    const std::vector<std::pair<std::string, std::string>>& text) {
  native_.recordAnnotation(text);
}
void CudaStepAllocator::pushCompileContext(std::string& text) {
  native_.pushCompileContext(text);
}
void CudaStepAllocator::popCompileContext() {
  native_.popCompileContext();
}
void CudaStepAllocator::setUserMetadata(const std::string& text) {
  native_.setUserMetadata(text);
}
std::string CudaStepAllocator::getUserMetadata() {
  return native_.getUserMetadata();
}
void CudaStepAllocator::attachOutOfMemoryObserver(native::OutOfMemoryObserver observer) {
  native_.attachOutOfMemoryObserver(std::move(observer));
}
void CudaStepAllocator::attachAllocatorTraceTracker(
    c10::CachingDeviceAllocator::AllocatorTraceTracker tracker) {
  native_.attachAllocatorTraceTracker(std::move(tracker));
}
void CudaStepAllocator::enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex to) {
  native_.enablePeerAccess(device, to);
}
cudaError_t CudaStepAllocator::memcpyAsync(void* to, int to_device, const void* from,
                                           int from_device, std::size_t bytes, cudaStream_t stream,
                                           bool peers) {
  return native_.memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
}
std::shared_ptr<native::AllocatorState> CudaStepAllocator::getCheckpointState(
    c10::DeviceIndex device, c10::MempoolId_t pool) {
  return native_.getCheckpointState(device, pool);
}
native::CheckpointDelta CudaStepAllocator::setCheckpointPoolState(
    c10::DeviceIndex device, std::shared_ptr<native::AllocatorState> state) {
  return native_.setCheckpointPoolState(device, std::move(state));
}
std::string CudaStepAllocator::name() {
  return native_.name();
}

}  // namespace stowage::executor
