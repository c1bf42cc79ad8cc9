#include "gui/widgets/keys.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>

#include "gui/model/decision_kinds.h"

namespace stowage::gui {
namespace {

QString tr(const char* text) {
  return QCoreApplication::translate("keys", text);
}

using Sequences = QList<QKeySequence>;

// An action has one row; its text is what the menu's tool tip says at more length.
KeyRow action(const char* name, const Sequences& keys, const QString& text) {
  return {KeyPlace::window, Key::other, keys, QLatin1String(name), {}, text};
}

KeyRow view(KeyPlace place, Key key, const Sequences& keys, const QString& mouse,
            const QString& text) {
  return {place, key, keys, {}, mouse, text};
}

Sequences all_of(QKeySequence::StandardKey key) {
  return QKeySequence::keyBindings(key);
}

// Of the timeline and the memory curve.
std::vector<KeyRow> plot_rows() {
  return {
      view(KeyPlace::plot, Key::closer, {Qt::Key_W, Qt::Key_Up, Qt::Key_Plus}, tr("Wheel"),
           tr("closer, at the pointer")),
      view(KeyPlace::plot, Key::farther, {Qt::Key_S, Qt::Key_Down, Qt::Key_Minus}, tr("Wheel"),
           tr("farther, at the pointer")),
      view(KeyPlace::plot, Key::earlier, {Qt::Key_A, Qt::Key_Left}, tr("Shift+wheel"),
           tr("earlier")),
      view(KeyPlace::plot, Key::later, {Qt::Key_D, Qt::Key_Right}, tr("Shift+wheel"), tr("later")),
      view(KeyPlace::plot, Key::whole_step, {Qt::Key_Home}, {}, tr("the whole step")),
      view(KeyPlace::plot, Key::peak, {Qt::Key_P}, {},
           tr("go to the memory peak and list what is alive there")),
      view(KeyPlace::plot, Key::centre, {Qt::Key_F}, {}, tr("centre the selection")),
      view(KeyPlace::plot, Key::clear, {Qt::Key_Escape}, {}, tr("no selection, no range")),
      {KeyPlace::plot, Key::other, {}, {}, tr("Click"), tr("select what is there")},
      {KeyPlace::plot, Key::other, {}, {}, tr("Double click"), tr("show it over the whole width")},
      {KeyPlace::plot,
       Key::other,
       {},
       {},
       tr("Drag in the row of the whole step"),
       tr("go to another part of it")},
      {KeyPlace::plot, Key::other, {}, {}, tr("Right click"), tr("what can be done with it")},
      {KeyPlace::plot,
       Key::other,
       {},
       {},
       tr("Left drag"),
       tr("measure a range: time, bytes copied, GB/s, memory, and what runs in it")},
      view(KeyPlace::memory, Key::budget_up, {Qt::CTRL | Qt::Key_Up}, tr("Drag the budget line"),
           tr("a larger budget, replayed at once")),
      view(KeyPlace::memory, Key::budget_down, {Qt::CTRL | Qt::Key_Down},
           tr("Drag the budget line"), tr("a smaller budget, replayed at once")),
  };
}

std::vector<KeyRow> make_table() {
  const Sequences enter{Qt::Key_Return, Qt::Key_Enter};
  std::vector<KeyRow> rows = plot_rows();
  for (const DecisionKind& kind : decision_kinds()) {
    rows.push_back(view(KeyPlace::plan, Key::decide, {sequence_of(kind)}, {}, kind.help));
  }
  const std::vector<KeyRow> rest{
      view(KeyPlace::plan, Key::choose_decision, enter, tr("Double click"),
           tr("open the list of decisions")),
      view(KeyPlace::plan, Key::pin, {Qt::Key_P}, tr("Click in the column Pin"),
           tr("pin the decisions, or unpin them: a search leaves what is pinned as it is")),
      view(KeyPlace::plan, Key::centre, {Qt::Key_F}, {}, tr("show it in the timeline")),
      view(KeyPlace::filter, Key::to_rows, {Qt::Key_Down, Qt::Key_Return, Qt::Key_Enter}, {},
           tr("to the rows")),
      view(KeyPlace::filter, Key::clear, {Qt::Key_Escape}, {}, tr("clear the filter")),
      view(KeyPlace::rows, Key::follow, enter, tr("Double click"),
           tr("select what the row speaks of")),
      view(KeyPlace::rows, Key::centre, {Qt::Key_F}, {}, tr("show it in the timeline")),
      view(KeyPlace::rows, Key::peak, {Qt::Key_P}, {}, tr("what is alive at the peak")),
      view(KeyPlace::rows, Key::copy, all_of(QKeySequence::Copy), {}, tr("copy all rows as text")),
      view(KeyPlace::pareto, Key::next_point, {Qt::Key_Right, Qt::Key_Down}, {},
           tr("the next plan, with more memory")),
      view(KeyPlace::pareto, Key::previous_point, {Qt::Key_Left, Qt::Key_Up}, {},
           tr("the plan before it, with less memory")),
      view(KeyPlace::pareto, Key::first_point, {Qt::Key_Home}, {},
           tr("the plan with the least memory")),
      view(KeyPlace::pareto, Key::last_point, {Qt::Key_End}, {}, tr("that with the most memory")),
      view(KeyPlace::pareto, Key::load_point, enter, tr("Click"), tr("load the plan")),
      view(KeyPlace::search, Key::next_hit, {Qt::Key_Return, Qt::Key_Enter, Qt::Key_F3}, {},
           tr("next hit")),
      view(KeyPlace::search, Key::previous_hit,
           {Qt::SHIFT | Qt::Key_Return, Qt::SHIFT | Qt::Key_Enter, Qt::SHIFT | Qt::Key_F3}, {},
           tr("previous hit")),
      view(KeyPlace::search, Key::close_search, {Qt::Key_Escape}, {}, tr("close the search")),
      action("open", all_of(QKeySequence::Open), tr("open a trace, a plan or a result")),
      action("reload", {Qt::Key_F5}, tr("read the file again")),
      action("save", all_of(QKeySequence::Save), tr("save the plan")),
      action("save_as", {Qt::CTRL | Qt::SHIFT | Qt::Key_S}, tr("save the plan in another file")),
      action("close", {Qt::CTRL | Qt::Key_W}, tr("close what is open")),
      action("quit", {Qt::CTRL | Qt::Key_Q}, tr("end the program")),
      action("undo", {Qt::CTRL | Qt::Key_Z}, tr("take the last edit of the plan back")),
      action("redo", {Qt::CTRL | Qt::SHIFT | Qt::Key_Z, Qt::CTRL | Qt::Key_Y}, tr("make it again")),
      action("find", {Qt::CTRL | Qt::Key_F}, tr("find ops, layers and saved tensors")),
      action("find_next", {Qt::Key_F3}, tr("next hit")),
      action("find_previous", {Qt::SHIFT | Qt::Key_F3}, tr("previous hit")),
      action("copy_command", {Qt::CTRL | Qt::SHIFT | Qt::Key_C},
             tr("copy the command line that gives what is shown")),
      action("go_to_stall", {Qt::CTRL | Qt::Key_L},
             tr("the longest stall and its cause; again: the next one")),
      action("plan", {Qt::CTRL | Qt::Key_P}, tr("find the best plan for the budget")),
      action("cancel", {Qt::CTRL | Qt::Key_Period}, tr("cancel what runs")),
      action("keys", {Qt::Key_Question}, tr("this list")),
  };
  rows.insert(rows.end(), rest.begin(), rest.end());
  return rows;
}

}  // namespace

const std::vector<KeyRow>& key_table() {
  static const std::vector<KeyRow> table = make_table();
  return table;
}

std::optional<Key> key_of(const QKeyEvent& event, KeyPlace place) {
  const Qt::KeyboardModifiers modifiers = event.modifiers() & ~Qt::KeypadModifier;
  const QKeySequence pressed(event.key() | static_cast<int>(modifiers));
  // On many keyboards "+" has Shift with it.
  const QKeySequence sign(event.key() | static_cast<int>(modifiers & ~Qt::ShiftModifier));
  const bool is_sign = event.key() < Qt::Key_0 && event.key() > Qt::Key_Space;
  for (const KeyRow& row : key_table()) {
    if (row.place != place) continue;
    if (row.sequences.contains(pressed) || (is_sign && row.sequences.contains(sign))) {
      return row.key;
    }
  }
  return std::nullopt;
}

QList<QKeySequence> shortcuts_of(const QString& action) {
  const auto& rows = key_table();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const KeyRow& row) {
    return row.place == KeyPlace::window && row.action == action;
  });
  return at == rows.end() ? QList<QKeySequence>() : at->sequences;
}

QKeySequence sequence_of(const DecisionKind& kind) {
  return QKeySequence(kind.key.unicode() | static_cast<int>(modifiers_of(kind.of)));
}

QKeySequence sequence_of(Key key, KeyPlace place) {
  const auto& rows = key_table();
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const KeyRow& row) {
    return row.place == place && row.key == key;
  });
  return at == rows.end() || at->sequences.empty() ? QKeySequence() : at->sequences.front();
}

QString name_of(KeyPlace place) {
  switch (place) {
    case KeyPlace::window:
      return tr("Everywhere");
    case KeyPlace::plot:
      return tr("In the timeline and the memory curve");
    case KeyPlace::memory:
      return tr("In the memory curve");
    case KeyPlace::pareto:
      return tr("In memory against time");
    case KeyPlace::plan:
      return tr("In the plan, for the selected rows");
    case KeyPlace::filter:
      return tr("In the filter of the plan");
    case KeyPlace::rows:
      return tr("In the details and in what is alive");
    case KeyPlace::search:
      return tr("In the search");
  }
  return {};
}

QString keys_text(const KeyRow& row) {
  QStringList parts;
  for (const QKeySequence& sequence : row.sequences) {
    parts << sequence.toString(QKeySequence::NativeText);
  }
  if (!row.mouse.isEmpty()) parts << row.mouse;
  return parts.join(QStringLiteral(", "));
}

}  // namespace stowage::gui
