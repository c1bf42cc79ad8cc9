#include "gui/app/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace stowage::gui {
namespace {

const QString kKey = QStringLiteral("recent_files");

}  // namespace

QStringList recent_files() {
  QStringList files;
  for (const QString& file : QSettings().value(kKey).toStringList()) {
    if (QFileInfo::exists(file)) files << file;
  }
  return files;
}

void remember_file(const QString& path) {
  const QString file = QFileInfo(path).absoluteFilePath();
  QSettings settings;
  QStringList files = settings.value(kKey).toStringList();
  files.removeAll(file);
  files.prepend(file);
  settings.setValue(kKey, files.mid(0, kRecentFiles));
}

void forget_files() {
  QSettings().remove(kKey);
}

}  // namespace stowage::gui
