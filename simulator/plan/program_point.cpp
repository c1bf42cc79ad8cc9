#include "simulator/plan/program_point.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <vector>

#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

Error malformed(std::string_view text, const std::string& what, std::string hint) {
  return {ErrorCode::bad_input, "\"" + std::string(text) + "\" " + what, "", "", std::move(hint)};
}

constexpr const char* kPointHint = "a program point is written fwd:layers.3.mlp:end";

std::optional<std::int32_t> small_number(std::string_view digits) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || digits.empty() ||
      digits[0] == '-') {
    return std::nullopt;
  }
  return value;
}

// The layers named `prefix` plus one component, in forward order (rows of one order: by number).
std::vector<LayerId> layers_with_prefix(const Trace& trace, std::string_view prefix) {
  std::vector<LayerId> found;
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const std::string_view name = trace.string(trace.layers.name[i]);
    if (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix &&
        name.find('.', prefix.size()) == std::string_view::npos) {
      found.emplace_back(i);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](LayerId a, LayerId b) {
    return trace.layers.forward_order[a.index()] < trace.layers.forward_order[b.index()];
  });
  return found;
}

// The position in `group` of the layer whose path is `path` or begins with it and a dot.
std::optional<std::size_t> position(const Trace& trace, const std::vector<LayerId>& group,
                                    std::string_view path) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::string_view name = trace.string(trace.layers.name[group[i].index()]);
    if (path.substr(0, name.size()) == name &&
        (path.size() == name.size() || path[name.size()] == '.')) {
      return i;
    }
  }
  return std::nullopt;
}

std::string_view path_of(const Trace& trace, LayerId layer) {
  return layer.valid() ? std::string_view(trace.string(trace.layers.name[layer.index()]))
                       : std::string_view();
}

std::string phase_name(ProgramPoint::Phase phase) {
  switch (phase) {
    case ProgramPoint::Phase::forward:
      return "fwd";
    case ProgramPoint::Phase::backward:
      return "bwd";
    case ProgramPoint::Phase::optimizer:
      return "opt";
  }
  return "?";
}

}  // namespace

Result<ProgramPoint> parse_program_point(std::string_view text) {
  if (text.find("@mb=") != std::string_view::npos) {
    return malformed(text, "uses @mb=, which is not supported yet", "leave it out");
  }
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  if (first == std::string_view::npos || first == last) {
    return malformed(text, "is no program point", kPointHint);
  }
  ProgramPoint point;
  const std::string_view phase = text.substr(0, first);
  if (phase == "fwd") {
    point.phase = ProgramPoint::Phase::forward;
  } else if (phase == "bwd") {
    point.phase = ProgramPoint::Phase::backward;
  } else if (phase == "opt") {
    point.phase = ProgramPoint::Phase::optimizer;
  } else {
    return malformed(text, "has no phase fwd, bwd or opt", kPointHint);
  }

  const std::string_view layer = text.substr(first + 1, last - first - 1);
  if (layer.empty()) return malformed(text, "names no layer", kPointHint);
  const std::size_t component =
      layer.rfind('.') == std::string_view::npos ? 0 : layer.rfind('.') + 1;
  const std::string_view tail = layer.substr(component);
  if (!tail.empty() && (tail[0] == '+' || tail[0] == '-')) {
    const auto distance = small_number(tail.substr(1));
    if (!distance) {
      return malformed(text, "has no number after the sign", "a relative layer is layers.+1");
    }
    point.layer = std::string(layer.substr(0, component));
    point.relative = true;
    point.distance = tail[0] == '-' ? -*distance : *distance;
  } else {
    point.layer = std::string(layer);
  }

  const std::string_view where = text.substr(last + 1);
  if (where == "begin") {
    point.where = ProgramPoint::Where::begin;
  } else if (where == "end") {
    point.where = ProgramPoint::Where::end;
  } else if (const auto op = small_number(where)) {
    point.where = ProgramPoint::Where::op;
    point.op = *op;
  } else {
    return malformed(text, "ends in none of begin, end and an op's number", kPointHint);
  }
  return point;
}

std::string format_program_point(const ProgramPoint& point) {
  std::string text = phase_name(point.phase) + ":" + point.layer;
  if (point.relative) {
    text += point.distance < 0 ? "-" : "+";
    // Widened: the distance may be the smallest number.
    const std::int64_t distance = point.distance;
    text += std::to_string(distance < 0 ? -distance : distance);
  }
  switch (point.where) {
    case ProgramPoint::Where::begin:
      return text + ":begin";
    case ProgramPoint::Where::end:
      return text + ":end";
    case ProgramPoint::Where::op:
      return text + ":" + std::to_string(point.op);
  }
  return text;
}

Result<ReleasePoint> parse_release_point(std::string_view text) {
  ReleasePoint release;
  if (text == "auto") return release;
  if (text == "pack") {
    release.kind = ReleasePoint::Kind::pack;
    return release;
  }
  if (text.substr(0, 5) == "pack+") {
    const auto lag = small_number(text.substr(5));
    if (!lag) return malformed(text, "has no number after pack+", "write pack+5");
    release.kind = ReleasePoint::Kind::pack;
    release.lag = *lag;
    return release;
  }
  if (text.find(':') == std::string_view::npos) {
    return malformed(text, "is no release point",
                     "auto, pack, pack+N, or a program point such as fwd:layers.3:end");
  }
  auto point = parse_program_point(text);
  if (!point) return point.error();
  release.kind = ReleasePoint::Kind::point;
  release.point = std::move(*point);
  return release;
}

Result<ReloadPoint> parse_reload_point(std::string_view text) {
  ReloadPoint reload;
  if (text == "auto") return reload;
  if (text == "unpack") {
    reload.kind = ReloadPoint::Kind::unpack;
    return reload;
  }
  if (text.find(':') == std::string_view::npos) {
    return malformed(text, "is no reload point",
                     "auto, unpack, or a program point such as bwd:layers.3:begin");
  }
  auto point = parse_program_point(text);
  if (!point) return point.error();
  reload.kind = ReloadPoint::Kind::point;
  reload.point = std::move(*point);
  return reload;
}

std::string format_release_point(const ReleasePoint& release) {
  switch (release.kind) {
    case ReleasePoint::Kind::automatic:
      return "auto";
    case ReleasePoint::Kind::pack:
      return release.lag == 0 ? "pack" : "pack+" + std::to_string(release.lag);
    case ReleasePoint::Kind::point:
      return format_program_point(release.point);
  }
  return "?";
}

std::string format_reload_point(const ReloadPoint& reload) {
  switch (reload.kind) {
    case ReloadPoint::Kind::automatic:
      return "auto";
    case ReloadPoint::Kind::unpack:
      return "unpack";
    case ReloadPoint::Kind::point:
      return format_program_point(reload.point);
  }
  return "?";
}

Result<ProgramPoint> absolute_point(const Trace& trace, const ProgramPoint& point, LayerId own) {
  if (!point.relative) {
    std::vector<std::string> names;
    for (const StringId name : trace.layers.name) {
      if (trace.string(name) == point.layer) return point;
      names.push_back(trace.string(name));
    }
    const std::string near = nearest(point.layer, names);
    return Error{ErrorCode::bad_input, "the trace has no layer \"" + point.layer + "\"", "", "",
                 near.empty() ? "stowage inspect lists the layers" : "the nearest is " + near};
  }
  const std::vector<LayerId> group = layers_with_prefix(trace, point.layer);
  const auto here = position(trace, group, path_of(trace, own));
  if (!here) {
    return Error{ErrorCode::bad_input,
                 "\"" + format_program_point(point) + "\" counts from a layer \"" + point.layer +
                     "*\", and \"" + std::string(path_of(trace, own)) + "\" is in none",
                 "", "", "give that site a rule of its own, with an absolute point"};
  }
  const std::int64_t wanted = static_cast<std::int64_t>(*here) + point.distance;
  const std::int64_t clamped =
      std::clamp<std::int64_t>(wanted, 0, static_cast<std::int64_t>(group.size()) - 1);
  ProgramPoint absolute = point;
  absolute.layer = path_of(trace, group[static_cast<std::size_t>(clamped)]);
  absolute.relative = false;
  absolute.distance = 0;
  return absolute;
}

ProgramPoint relative_point(const Trace& trace, const ProgramPoint& point, LayerId own) {
  const std::size_t dot = point.layer.rfind('.');
  if (dot == std::string::npos) return point;
  ProgramPoint relative = point;
  relative.layer = point.layer.substr(0, dot + 1);
  relative.relative = true;
  const std::vector<LayerId> group = layers_with_prefix(trace, relative.layer);
  const auto here = position(trace, group, path_of(trace, own));
  const auto there = position(trace, group, point.layer);
  if (!here || !there) return point;
  relative.distance = static_cast<std::int32_t>(*there) - static_cast<std::int32_t>(*here);
  const auto back = absolute_point(trace, relative, own);
  return back && back.value() == point ? relative : point;
}

}  // namespace stowage::simulator
