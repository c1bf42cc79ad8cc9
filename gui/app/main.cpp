// `stowage-gui`: the desktop program.
#include <QApplication>
#include <QStandardPaths>
#include <cstdio>
#include <cstring>

#include "gui/app/main_window.h"
#include "gui/app/options.h"
#include "gui/app/screenshot.h"
#include "gui/widgets/contrast_style.h"
#include "traces/build_info.h"

namespace {

int fail(const stowage::Error& error) {
  std::fprintf(stderr, "stowage-gui: error: %s\n", error.text().c_str());
  return static_cast<int>(error.code);
}

bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
    if (!qgetenv(name).isEmpty()) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stowage;
  QStringList arguments;
  for (int i = 1; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
  const Result<gui::Options> options = gui::parse_options(arguments);
  if (!options) return fail(options.error());
  if (options->help) {
    std::fputs(gui::help_text().toUtf8().constData(), stdout);
    return 0;
  }
  if (options->version) {
    std::printf("stowage-gui %s\n", std::string(kVersion).c_str());
    return 0;
  }
  const bool picture = !options->screenshot.isEmpty();
  if (!has_display()) {
    if (!picture) {
      return fail({ErrorCode::environment, "there is no display", "", "",
                   "set DISPLAY or WAYLAND_DISPLAY, or use --screenshot"});
    }
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  QApplication::setApplicationName(QStringLiteral("stowage-gui"));
  QApplication::setOrganizationName(QStringLiteral("stowage"));
  QApplication::setDesktopFileName(QStringLiteral("stowage-gui"));
  // Pictures of other people's settings would differ.
  if (picture) QStandardPaths::setTestModeEnabled(true);
  QApplication application(argc, argv);
  gui::ContrastStyle::install();
  gui::MainWindow window;
  if (picture) {
    const Status taken = gui::take_screenshot(window, *options);
    return taken ? 0 : fail(taken.error());
  }
  window.restore_layout();
  window.show();
  window.open_files(options->files);
  return QApplication::exec();
}
