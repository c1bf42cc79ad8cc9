#include "report/colours.h"

#include "traces/result.h"

namespace stowage::report {
namespace {

constexpr const char* kOrange = "#e69f00";
constexpr const char* kSky = "#56b4e9";
constexpr const char* kGreen = "#009e73";
constexpr const char* kYellow = "#f0e442";
constexpr const char* kBlue = "#0072b2";
constexpr const char* kVermilion = "#d55e00";
constexpr const char* kPurple = "#cc79a7";

}  // namespace

const char* colour_of(Lane lane) {
  switch (lane) {
    case Lane::launch:
      return "#8c8c8c";
    case Lane::compute:
      return kBlue;
    case Lane::d2h:
      return kOrange;
    case Lane::h2d:
      return kGreen;
    case Lane::stalls:
      return "#c62828";
    case Lane::updates:
      return kPurple;
  }
  STOWAGE_ASSERT(false && "unknown lane");
}

const char* colour_of(StorageClass storage_class) {
  switch (storage_class) {
    case StorageClass::parameter:
      return kBlue;
    case StorageClass::gradient:
      return kVermilion;
    case StorageClass::optimizer_state:
      return kPurple;
    case StorageClass::buffer:
      return "#4d4d4d";
    case StorageClass::activation:
      return kSky;
    case StorageClass::temporary:
      return kYellow;
    case StorageClass::input:
      return kGreen;
    case StorageClass::output:
      return "#80cfb9";
    case StorageClass::workspace:
      return kOrange;
    case StorageClass::other:
      return "#808080";
  }
  STOWAGE_ASSERT(false && "unknown class");
}

const char* colour_of(WorkFamily family) {
  switch (family) {
    case WorkFamily::matrix:
      return kBlue;
    case WorkFamily::attention:
      return kPurple;
    case WorkFamily::normalising:
      return kGreen;
    case WorkFamily::elementwise:
      return kSky;
    case WorkFamily::moving:
      return "#808080";
    case WorkFamily::optimizer:
      return kVermilion;
    case WorkFamily::other:
      return "#b3b3b3";
  }
  STOWAGE_ASSERT(false && "unknown family");
}

}  // namespace stowage::report
