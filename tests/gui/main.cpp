// Real windows without a display: Qt's offscreen platform unless QT_QPA_PLATFORM names another one
// (tests/gui/xvfb.sh), settings in a folder of their own.
#include <gtest/gtest.h>

#include <QSettings>
#include <QTemporaryDir>

#include "gui/widgets/contrast_style.h"
#include "tests/gui/watched_application.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir settings;
  QSettings::setDefaultFormat(QSettings::IniFormat);
  QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, settings.path());
  QApplication::setOrganizationName("stowage");
  QApplication::setApplicationName("stowage-gui-tests");
  const stowage::testing::WatchedApplication application(argc, argv);
  stowage::gui::ContrastStyle::install();
  return RUN_ALL_TESTS();
}
