#include "gui/app/options.h"

#include <optional>
#include <string>
#include <vector>

#include "traces/nearest.h"

namespace stowage::gui {
namespace {

Error usage(const QString& message, const QString& hint = "see stowage-gui --help") {
  return {ErrorCode::usage, message.toStdString(), "", "", hint.toStdString()};
}

std::optional<QSize> parse_view_size(const QString& text) {
  const QStringList parts = text.toLower().split('x');
  bool wide = false;
  bool high = false;
  if (parts.size() != 2) return std::nullopt;
  const QSize size(parts[0].toInt(&wide), parts[1].toInt(&high));
  constexpr int kLeast = 64;
  constexpr int kMost = 16384;
  const bool fits = wide && high && size.width() >= kLeast && size.height() >= kLeast &&
                    size.width() <= kMost && size.height() <= kMost;
  return fits ? std::optional(size) : std::nullopt;
}

Error unknown(const QString& option) {
  const std::vector<std::string> known{"--help", "--version", "--screenshot", "--view", "--size"};
  const std::string near = nearest(option.toStdString(), known);
  return usage(QStringLiteral("unknown option %1").arg(option),
               near.empty() ? QStringLiteral("see stowage-gui --help")
                            : QStringLiteral("did you mean %1?").arg(QString::fromStdString(near)));
}

}  // namespace

QStringList view_ids() {
  return {"timeline", "memory", "plan",    "details", "alive",
          "blocks",   "range",  "what_if", "pareto",  "compare"};
}

Result<Options> parse_options(const QStringList& arguments) {
  Options options;
  bool only_files = false;
  bool has_size = false;
  for (int i = 0; i < arguments.size(); ++i) {
    const QString& argument = arguments[i];
    if (only_files || !argument.startsWith('-') || argument == "-") {
      options.files << argument;
      continue;
    }
    if (argument == "--") {
      only_files = true;
      continue;
    }
    const QString name = argument.section('=', 0, 0);
    if (name == "--help" || name == "-h") {
      options.help = true;
      continue;
    }
    if (name == "--version") {
      options.version = true;
      continue;
    }
    if (name != "--screenshot" && name != "--view" && name != "--size") return unknown(name);
    QString value = argument.section('=', 1);
    if (!argument.contains('=')) {
      if (i + 1 >= arguments.size()) return usage(QStringLiteral("%1 needs a value").arg(name));
      value = arguments[++i];
    }
    if (name == "--screenshot") {
      if (value.isEmpty()) return usage("--screenshot needs the name of a file");
      if (!value.endsWith(".png", Qt::CaseInsensitive)) {
        return usage(QStringLiteral("--screenshot writes PNG pictures, and %1 does not end in .png")
                         .arg(value),
                     "name it .png; stowage export TRACE -o step.svg draws the step as SVG");
      }
      options.screenshot = value;
    } else if (name == "--view") {
      if (!view_ids().contains(value)) {
        return usage(QStringLiteral("there is no view '%1'").arg(value),
                     QStringLiteral("one of %1").arg(view_ids().join(", ")));
      }
      options.view = value;
    } else {
      const auto size = parse_view_size(value);
      if (!size)
        return usage(QStringLiteral("--size %1 is no size").arg(value), "such as 1280x800");
      options.size = *size;
      has_size = true;
    }
  }
  if (options.help || options.version) return options;
  if (options.screenshot.isEmpty() && (has_size || !options.view.isEmpty())) {
    return usage("--view and --size are for --screenshot");
  }
  if (!options.screenshot.isEmpty() && options.files.isEmpty()) {
    return usage("--screenshot needs a file to show", "a trace, a plan or a result");
  }
  return options;
}

QString help_text() {
  return QStringLiteral(
             "Shows where every tensor of a training step lives, and plans where it should.\n\n"
             "Usage: stowage-gui [FILE..]\n"
             "       stowage-gui --screenshot OUT.png [--view V] [--size WxH] FILE..\n\n"
             "FILE is a trace (.json or .json.gz), a plan, or what stowage execute --json "
             "printed;\n"
             "a trace and a plan, in any order, show that plan on that trace.\n\n"
             "Options:\n"
             "  --screenshot OUT.png  write a picture and end; needs no display\n"
             "  --view V              of one view: %1\n"
             "  --size WxH            of the picture in pixels, 1280x800 if absent\n"
             "  --help                this text\n"
             "  --version             the version\n\n"
             "Example: stowage-gui --screenshot memory.png --view memory t.trace.json.gz "
             "plan.json\n\n"
             "Exit codes: 0 ok, 2 usage, 3 bad input, 4 environment (no display).\n")
      .arg(view_ids().join(", "));
}

}  // namespace stowage::gui
