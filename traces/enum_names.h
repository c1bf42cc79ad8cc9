// The names of every enum of a Trace in the order of their numbers, which is how files store them.
// Shared by name_of(), the legend of the JSON form and its reader.
#pragma once

#include <array>
#include <span>

#include "traces/trace.h"

namespace stowage {

namespace names {
inline constexpr std::array<const char*, 10> kStorageClass = {
    "parameter", "gradient", "optimizer_state", "buffer",    "activation",
    "temporary", "input",    "output",          "workspace", "other"};
inline constexpr std::array<const char*, 4> kEvidence = {"none", "registered", "hook", "data_flow"};
inline constexpr std::array<const char*, 6> kPhaseKind = {"zero_grad", "data",      "forward",
                                                          "backward",  "optimizer", "recompute"};
inline constexpr std::array<const char*, 47> kDType = {"uint8",
                                                       "int8",
                                                       "int16",
                                                       "int32",
                                                       "int64",
                                                       "float16",
                                                       "bfloat16",
                                                       "float32",
                                                       "float64",
                                                       "complex64",
                                                       "complex128",
                                                       "boolean",
                                                       "uint16",
                                                       "uint32",
                                                       "uint64",
                                                       "complex32",
                                                       "float8_e5m2",
                                                       "float8_e4m3fn",
                                                       "float8_e5m2fnuz",
                                                       "float8_e4m3fnuz",
                                                       "float8_e8m0fnu",
                                                       "float4_e2m1fn_x2",
                                                       "qint8",
                                                       "quint8",
                                                       "qint32",
                                                       "quint4x2",
                                                       "quint2x4",
                                                       "bits1x8",
                                                       "bits2x4",
                                                       "bits4x2",
                                                       "bits8",
                                                       "bits16",
                                                       "uint1",
                                                       "uint2",
                                                       "uint3",
                                                       "uint4",
                                                       "uint5",
                                                       "uint6",
                                                       "uint7",
                                                       "int1",
                                                       "int2",
                                                       "int3",
                                                       "int4",
                                                       "int5",
                                                       "int6",
                                                       "int7",
                                                       "other"};
inline constexpr std::array<const char*, 4> kUseMode = {"read", "write", "in_place", "alias"};
inline constexpr std::array<const char*, 19> kEventKind = {"step_begin",
                                                           "step_end",
                                                           "alloc",
                                                           "free",
                                                           "pack",
                                                           "unpack",
                                                           "layer_forward_begin",
                                                           "layer_forward_end",
                                                           "layer_backward_begin",
                                                           "layer_backward_end",
                                                           "gradient_accumulated",
                                                           "op_begin",
                                                           "op_end",
                                                           "backward_begin",
                                                           "backward_end",
                                                           "parameter_update_begin",
                                                           "parameter_update_end",
                                                           "recompute_begin",
                                                           "recompute_end"};
inline constexpr std::array<const char*, 3> kGpuKind = {"kernel", "memcpy", "memset"};
}  // namespace names

template <class Enum>
[[nodiscard]] constexpr std::span<const char* const> enum_names();

template <>
constexpr std::span<const char* const> enum_names<StorageClass>() {
  return names::kStorageClass;
}
template <>
constexpr std::span<const char* const> enum_names<Evidence>() {
  return names::kEvidence;
}
template <>
constexpr std::span<const char* const> enum_names<PhaseKind>() {
  return names::kPhaseKind;
}
template <>
constexpr std::span<const char* const> enum_names<DType>() {
  return names::kDType;
}
template <>
constexpr std::span<const char* const> enum_names<UseMode>() {
  return names::kUseMode;
}
template <>
constexpr std::span<const char* const> enum_names<EventKind>() {
  return names::kEventKind;
}
template <>
constexpr std::span<const char* const> enum_names<GpuKind>() {
  return names::kGpuKind;
}

}  // namespace stowage
