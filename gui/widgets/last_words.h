// For a widget that hears its own fields and may be a window, a dialog say. A window that ends is
// hidden by ~QWidget, when its derived classes are gone and its children are still there: the field
// that had the focus then hands over what was typed, and slots of the owner - of its fields, or of
// the document that changes - would run without it.
//
//   WhatIfPanel::~WhatIfPanel() { take_last_words(*this); }
#pragma once

#include <QApplication>
#include <QWidget>

namespace stowage::gui {

// What the field inside `owner` that has the focus has to say, it says now. For the destructor of
// the class whose slots may be called.
inline void take_last_words(const QWidget& owner) {
  QWidget* field = QApplication::focusWidget();
  if (field != nullptr && owner.isAncestorOf(field)) field->clearFocus();
}

}  // namespace stowage::gui
