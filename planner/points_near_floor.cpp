#include "planner/points_near_floor.h"

namespace stowage::planner {

std::vector<Bytes> points_near_floor(Bytes floor, Bytes budget) {
  std::vector<Bytes> points;
  if (budget - floor > floor / kNearFloor) return points;
  for (Bytes part = 16 * kNearFloor; part > kNearFloor; part /= 2) {
    const Bytes point = floor + floor / part;
    if (point >= budget) break;
    points.push_back(point);
  }
  return points;
}

}  // namespace stowage::planner
