// The last files that were opened, newest first, kept in the settings.
#pragma once

#include <QStringList>

namespace stowage::gui {

inline constexpr int kRecentFiles = 10;

// Absolute paths; ones that are gone are left out.
[[nodiscard]] QStringList recent_files();
void remember_file(const QString& path);
void forget_files();

}  // namespace stowage::gui
