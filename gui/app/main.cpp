// `stowage-gui`: the desktop program.
#include <QApplication>
#include <QStandardPaths>
#include <cstdio>
#include <cstdlib>

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

// Qt ends the program with abort() where it cannot reach the display that is named.
void end_without_display(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type != QtFatalMsg) return;
  fail({stowage::ErrorCode::environment, "the display cannot be used", "", "",
        "set DISPLAY or WAYLAND_DISPLAY to one that runs, or use --screenshot. Qt says: " +
            text.simplified().toStdString()});
  std::fflush(stderr);
  std::_Exit(static_cast<int>(stowage::ErrorCode::environment));
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
  if (!picture && !has_display()) {
    return fail({ErrorCode::environment, "there is no display", "", "",
                 "set DISPLAY or WAYLAND_DISPLAY, or use --screenshot"});
  }
  // A picture needs no display, even where there is one.
  if (picture && qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  QApplication::setApplicationName(QStringLiteral("stowage-gui"));
  QApplication::setOrganizationName(QStringLiteral("stowage"));
  QApplication::setDesktopFileName(QStringLiteral("stowage-gui"));
  // Pictures of other people's settings would differ.
  if (picture) QStandardPaths::setTestModeEnabled(true);
  const QtMessageHandler usual = qInstallMessageHandler(end_without_display);
  QApplication application(argc, argv);
  qInstallMessageHandler(usual);
  gui::ContrastStyle::install();
  gui::MainWindow window;
  if (picture) {
    QObject::connect(&window.document(), &gui::PlanDocument::noted, [](const QString& text) {
      std::fprintf(stderr, "stowage-gui: note: %s\n", text.toUtf8().constData());
    });
    const Status taken = gui::take_screenshot(window, *options);
    return taken ? 0 : fail(taken.error());
  }
  window.restore_layout();
  window.show();
  window.open_files(options->files);
  return QApplication::exec();
}
