// Where to write something: a dialog for a file that need not be there.
#pragma once

#include <QString>
#include <QWidget>

namespace stowage::gui {

// The file that somebody chose, empty = none. A name without a suffix gets `suffix` ("png") before
// it is looked whether such a file is there, so that the question about overwriting is about the
// file that is written. `proposed`: a name, in its folder or else in the working directory.
[[nodiscard]] QString ask_where_to_save(QWidget* parent, const QString& title,
                                        const QString& proposed, const QString& suffix,
                                        const QString& filter = {});

}  // namespace stowage::gui
