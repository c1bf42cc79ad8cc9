#include "executor/host_pool.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

namespace stowage::executor {

struct HostPoolChunks {
  struct Chunk {
    HostArena arena;
    Bytes used = 0;          // slots lie one behind the other
    std::int64_t slots = 0;  // that are alive; the chunk is empty again when the last one goes
  };

  std::mutex mutex;  // guards everything below
  std::vector<Chunk> chunks;
  Bytes bytes = 0;
  bool pins = true;
};

namespace {

constexpr Bytes kAlignment = 512;
constexpr Bytes kSmallestChunk = Bytes{4} << 20;
constexpr Bytes kLargestChunk = Bytes{1} << 30;

// A chunk of at least `bytes`; under the lock.
HostArena new_arena(Device& device, HostPoolChunks& chunks, Bytes bytes) {
  const Bytes wanted =
      std::max(bytes, std::clamp(chunks.bytes, kSmallestChunk, kLargestChunk));  // doubles
  for (const Bytes size : {wanted, bytes}) {  // less than wanted where the machine has no more
    Result<HostArena> arena = chunks.pins ? device.host_arena(size) : HostArena::create(size);
    if (!arena) continue;
    if (!arena->pinned()) chunks.pins = false;
    return std::move(arena).value();
  }
  throw std::bad_alloc();
}

}  // namespace

HostPool::HostPool(Device& device)
    : device_(&device), chunks_(std::make_shared<HostPoolChunks>()) {}

HostPool::Slot HostPool::take(Bytes bytes) {
  STOWAGE_ASSERT(bytes > 0);
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(chunks_->mutex);
  auto& chunks = chunks_->chunks;
  const auto fits = [&](const HostPoolChunks::Chunk& chunk) {
    return chunk.arena.bytes() - chunk.used >= bytes;
  };
  auto chunk = std::find_if(chunks.begin(), chunks.end(), fits);
  if (chunk == chunks.end()) {
    HostArena arena = new_arena(*device_, *chunks_, bytes);
    chunks_->bytes += arena.bytes();
    chunk = chunks.insert(chunks.end(), {std::move(arena), 0, 0});
  }
  Slot slot;
  slot.chunks_ = chunks_;
  slot.chunk_ = static_cast<std::size_t>(chunk - chunks.begin());
  slot.data_ = chunk->arena.data() + chunk->used;
  chunk->used += bytes;
  ++chunk->slots;
  return slot;
}

Bytes HostPool::bytes() const {
  const std::lock_guard lock(chunks_->mutex);
  return chunks_->bytes;
}

void HostPool::Slot::give_back() noexcept {
  if (data_ == nullptr) return;
  const std::lock_guard lock(chunks_->mutex);
  HostPoolChunks::Chunk& chunk = chunks_->chunks[chunk_];
  if (--chunk.slots == 0) chunk.used = 0;
}

}  // namespace stowage::executor
