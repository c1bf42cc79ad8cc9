// Every key of the program, once: the window's actions take their shortcuts from this table, views
// look up here what a key means to them, and the `?` list is made of it. No other file of the
// views and of the window names a key (tests/gui/keys_test.cpp).
#pragma once

#include <QKeyEvent>
#include <QKeySequence>
#include <QList>
#include <QString>
#include <optional>
#include <vector>

namespace stowage::gui {

struct DecisionKind;

// Where a key is heard: in the whole window, or in the view that has the focus.
enum class KeyPlace : std::uint8_t {
  window,
  plot,    // timeline and memory curve
  memory,  // the memory curve alone
  pareto,
  plan,
  filter,  // of the plan
  rows,    // details, and what is alive
  search,
};

enum class Key : std::uint8_t {
  other,  // no view looks it up: an action of the window, or the mouse alone
  closer,
  farther,
  earlier,
  later,
  whole_step,
  centre,
  peak,
  clear,
  budget_up,
  budget_down,
  next_point,
  previous_point,
  first_point,
  last_point,
  load_point,
  decide,  // as the table of decision kinds says
  choose_decision,
  pin,
  to_rows,
  follow,
  copy,
  next_hit,
  previous_hit,
  close_search,
};

struct KeyRow {
  KeyPlace place;
  Key key;
  QList<QKeySequence> sequences;  // empty: it is done with the mouse
  QString action;                 // the action's name, of KeyPlace::window
  QString mouse;                  // what does the same; may be empty
  QString text;                   // what it does
};

// In the order of the `?` list.
[[nodiscard]] const std::vector<KeyRow>& key_table();

// What this key press means there; nothing = it is no key of that place. Keys of the number pad
// count as the others do.
[[nodiscard]] std::optional<Key> key_of(const QKeyEvent& event, KeyPlace place);

// Of the window's action with this name; empty = it has no keys.
[[nodiscard]] QList<QKeySequence> shortcuts_of(const QString& action);

// What is pressed to decide so, for the selected rows.
[[nodiscard]] QKeySequence sequence_of(const DecisionKind& kind);

// The first of what is pressed for that there; empty = nothing.
[[nodiscard]] QKeySequence sequence_of(Key key, KeyPlace place);

// "In the plots"
[[nodiscard]] QString name_of(KeyPlace place);
// "W, Up, Ctrl+wheel"
[[nodiscard]] QString keys_text(const KeyRow& row);

}  // namespace stowage::gui
