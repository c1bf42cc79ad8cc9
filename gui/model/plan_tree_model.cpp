#include "gui/model/plan_tree_model.h"

#include <algorithm>
#include <utility>

#include "gui/model/name_search.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

QString qstring(const std::string& text) {
  return QString::fromStdString(text);
}

QString time_or_dash(Nanoseconds time) {
  return time < 0 ? QStringLiteral("–") : qstring(format_time(time));
}

}  // namespace

PlanTreeModel::PlanTreeModel(PlanDocument& document, Explanations& explanations, QObject* parent)
    : QAbstractItemModel(parent), document_(document), explanations_(explanations) {
  connect(&document_, &PlanDocument::changed, this, &PlanTreeModel::follow_document);
  connect(&document_, &PlanDocument::edited, this, &PlanTreeModel::follow_document);
  connect(&document_, &PlanDocument::pinned, this, &PlanTreeModel::refresh);
  connect(&explanations_, &Explanations::changed, this, &PlanTreeModel::follow);
  follow();
}

void PlanTreeModel::follow() {
  const auto tree = explanations_.current() ? explanations_.current()->tree : nullptr;
  if (tree == tree_) return refresh();
  beginResetModel();
  tree_ = tree;
  compute();
  endResetModel();
  Q_EMIT refreshed();
}

// A replay of decisions that are shown already changes figures, which come with the explanations.
void PlanTreeModel::follow_document() {
  if (wanted() != decisions_) refresh();
}

void PlanTreeModel::compute() {
  decisions_ = wanted();
  const std::size_t count = tree_ ? tree_->rows.size() : 0;
  shares_.assign(count, {});
  const PlanDecisions* now = decisions();
  // Children stand behind their parents.
  for (std::size_t i = count; i-- > 0;) {
    const PlanRow& row = tree_->rows[i];
    if (row.kind == PlanRowKind::saved && tree_->can_move(row.saved)) {
      shares_[i].all = 1;
      const bool again = now != nullptr && now->runs_again(row.saved);
      const bool away =
          now != nullptr && !again && now->saved_is(row.saved, simulator::Decision::offload);
      shares_[i].offloaded = away ? 1 : 0;
      shares_[i].recomputed = again ? 1 : 0;
      shares_[i].by_layer = again && now->segment(row.saved) >= 0 ? 1 : 0;
    }
    const bool streams =
        row.kind == PlanRowKind::parameters || row.kind == PlanRowKind::optimizer_state;
    if (streams && reason_to_stay(row).empty()) {
      const bool is_state = row.kind == PlanRowKind::optimizer_state;
      const StreamingLayer& layer = tree_->streaming_of(row);
      using simulator::StatePlace;
      const StatePlace place =
          is_state && now != nullptr ? state_place(*now, layer) : StatePlace::device;
      (is_state ? shares_[i].state : shares_[i].parameters) = 1;
      shares_[i].state_away = place == StatePlace::stream ? 1 : 0;
      shares_[i].state_on_host = place == StatePlace::host ? 1 : 0;
      shares_[i].parameters_away = !is_state && now != nullptr && gui::streams(*now, layer) ? 1 : 0;
    }
    if (shares_[i].all + shares_[i].parameters + shares_[i].state > 0 &&
        row.kind != PlanRowKind::layer) {
      shares_[i].decisions = 1;
      shares_[i].pinned = document_.pinned_rows().has(row) ? 1 : 0;
    }
    if (row.parent >= 0) shares_[static_cast<std::size_t>(row.parent)].add(shares_[i]);
  }
}

void PlanTreeModel::Share::add(const Share& inner) {
  offloaded += inner.offloaded;
  recomputed += inner.recomputed;
  by_layer += inner.by_layer;
  all += inner.all;
  parameters += inner.parameters;
  parameters_away += inner.parameters_away;
  state += inner.state;
  state_away += inner.state_away;
  state_on_host += inner.state_on_host;
  decisions += inner.decisions;
  pinned += inner.pinned;
}

RowFigures PlanTreeModel::figures_of(std::size_t row) const {
  const ExplainedPtr& why = explanations_.current();
  return why && why->tree == tree_ ? why->figures[row] : RowFigures{};
}

void PlanTreeModel::refresh() {
  if (!tree_) return;
  compute();
  if (!tree_->top.empty()) {
    Q_EMIT dataChanged(index_of(tree_->top.front(), decision_column),
                       index_of(tree_->top.back(), stall_column));
  }
  Q_EMIT refreshed();
}

PlanTreeModel::DecisionsPtr PlanTreeModel::wanted() const {
  DecisionsPtr now;
  if (document_.current()) now = document_.current()->decisions;
  if (document_.state() && document_.state()->decisions) now = document_.state()->decisions;
  // Those of another step while the tree is of the one before.
  return now && tree_ && now->saved.size() == tree_->trace().saved.size() ? now : nullptr;
}

QModelIndex PlanTreeModel::index_of(std::int32_t row, int column) const {
  if (!tree_ || row < 0) return {};
  return createIndex(tree_->rows[static_cast<std::size_t>(row)].place, column,
                     static_cast<quintptr>(row));
}

PlanTreeModel::Share PlanTreeModel::share_of(std::int32_t layer_row) const {
  return shares_[static_cast<std::size_t>(layer_row)];
}

const PlanRow& PlanTreeModel::row_at(const QModelIndex& index) const {
  return tree_->rows[index.internalId()];
}

QModelIndex PlanTreeModel::index(int row, int column, const QModelIndex& parent) const {
  if (!tree_ || row < 0 || column < 0 || column >= columns) return {};
  const std::vector<std::int32_t>& beside = parent.isValid() ? row_at(parent).children : tree_->top;
  if (static_cast<std::size_t>(row) >= beside.size()) return {};
  return createIndex(row, column, static_cast<quintptr>(beside[static_cast<std::size_t>(row)]));
}

QModelIndex PlanTreeModel::parent(const QModelIndex& child) const {
  return child.isValid() && tree_ ? index_of(row_at(child).parent) : QModelIndex();
}

int PlanTreeModel::rowCount(const QModelIndex& parent) const {
  if (!tree_ || parent.column() > 0) return 0;
  return static_cast<int>(parent.isValid() ? row_at(parent).children.size() : tree_->top.size());
}

int PlanTreeModel::columnCount(const QModelIndex&) const {
  return columns;
}

QString PlanTreeModel::name(const PlanRow& row) const {
  const Trace& trace = tree_->trace();
  switch (row.kind) {
    case PlanRowKind::layer:
      return qstring(layer_words(trace, row.layer));
    case PlanRowKind::saved:
      return qstring(trace.string(trace.saved.site[row.saved.index()]));
    case PlanRowKind::parameters:
      return tr("parameters");
    case PlanRowKind::optimizer_state:
      return tr("optimizer state");
  }
  return {};
}

QString PlanTreeModel::kind_id(const QModelIndex& index) const {
  const PlanRow& row = row_at(index);
  const PlanDecisions* now = decisions();
  if (now == nullptr) return {};
  if (row.kind == PlanRowKind::layer) {
    const Share share = shares_[index.internalId()];
    if (share.all == 0) return {};
    if (share.recomputed == share.all) return QStringLiteral("recompute");
    if (share.offloaded == share.all) return QStringLiteral("offload");
    const bool is_kept = share.offloaded == 0 && share.recomputed == 0;
    return is_kept ? QStringLiteral("keep") : QStringLiteral("mixed");
  }
  const int kind = kind_of(*now, *tree_, row);
  return kind < 0 ? QString() : decision_kinds()[static_cast<std::size_t>(kind)].id;
}

std::string PlanTreeModel::reason_to_stay(const PlanRow& row) const {
  const bool streams =
      row.kind == PlanRowKind::parameters || row.kind == PlanRowKind::optimizer_state;
  return streams ? tree_->reason_to_stay(row) : std::string();
}

// " (by ops)", " (by layer)", " (both ways)" of a layer; " (with layers.3)" of what it saves.
QString PlanTreeModel::how_again(std::size_t row) const {
  const PlanDecisions& now = *decisions();
  const PlanRow& at = tree_->rows[row];
  if (at.kind == PlanRowKind::saved) {
    const std::int32_t segment = now.segment(at.saved);
    if (segment < 0) return tr(" (by ops)");
    return tr(" (with %1)").arg(qstring(now.segments[static_cast<std::size_t>(segment)]));
  }
  const Share& share = shares_[row];
  return share.by_layer == 0                  ? tr(" (by ops)")
         : share.by_layer == share.recomputed ? tr(" (by layer)")
                                              : tr(" (both ways)");
}

// "parameters stream", "optimizer state of 3 of 7 layers streams"; of a layer where any does.
QStringList PlanTreeModel::streaming_words(const Share& share) {
  QStringList words;
  if (share.parameters_away > 0) {
    words << (share.parameters_away == share.parameters ? tr("parameters stream")
                                                        : tr("parameters of %1 of %2 layers stream")
                                                              .arg(share.parameters_away)
                                                              .arg(share.parameters));
  }
  if (share.state_away > 0) {
    words << (share.state_away == share.state ? tr("optimizer state streams")
                                              : tr("optimizer state of %1 of %2 layers streams")
                                                    .arg(share.state_away)
                                                    .arg(share.state));
  }
  if (share.state_on_host > 0) {
    words << (share.state_on_host == share.state ? tr("updated on the host")
                                                 : tr("%1 of %2 layers updated on the host")
                                                       .arg(share.state_on_host)
                                                       .arg(share.state));
  }
  return words;
}

QString PlanTreeModel::decision_text(const QModelIndex& index) const {
  if (row_at(index).kind != PlanRowKind::layer) return saved_text(index);
  const QStringList streaming = streaming_words(shares_[index.internalId()]);
  if (streaming.isEmpty()) return saved_text(index);
  const QString streams = QStringLiteral("● ") + streaming.join(QStringLiteral(", "));
  return kind_id(index).isEmpty() ? streams : tr("%1; %2").arg(saved_text(index), streams);
}

// Of a layer: about what it saves alone.
QString PlanTreeModel::saved_text(const QModelIndex& index) const {
  const QString id = kind_id(index);
  if (id == QLatin1String("mixed")) {
    const Share share = shares_[index.internalId()];
    if (share.recomputed == 0) {
      return tr("◐ mixed: %1 of %2 offload").arg(share.offloaded).arg(share.all);
    }
    if (share.offloaded == 0) {
      return tr("◐ mixed: %1 of %2 recompute").arg(share.recomputed).arg(share.all);
    }
    return tr("◐ %1 offload, %2 recompute").arg(share.offloaded).arg(share.recomputed);
  }
  const PlanRow& row = row_at(index);
  const DecisionKind* kind = decision_kind(id);
  if (kind == nullptr) return QStringLiteral("–");
  QString text = kind->glyph + QLatin1Char(' ') + kind->word;
  if (id == QLatin1String("recompute")) text += how_again(index.internalId());
  if (!reason_to_stay(row).empty()) text += tr(" (cannot stream)");
  if (row.kind == PlanRowKind::saved) {
    const ExplainedPtr& why = explanations_.current();
    if (id == QLatin1String("keep") && !tree_->can_move(row.saved))
      text += tr(" (older than the step)");
    if (why && why->notes.count(name(row).toStdString()) != 0) text += QStringLiteral(" (!)");
  }
  return text;
}

QString PlanTreeModel::tip(const QModelIndex& index) const {
  const PlanRow& row = row_at(index);
  if (index.column() == bytes_column) {
    return tr("%L1 bytes").arg(static_cast<qlonglong>(row.bytes));
  }
  if (index.column() == pin_column && shares_[index.internalId()].decisions > 0) {
    const Share& share = shares_[index.internalId()];
    return tr("%1 of %2 decisions are pinned: a search leaves these as they are")
        .arg(share.pinned)
        .arg(share.decisions);
  }
  if (index.column() != decision_column && index.column() != name_column) return {};
  QStringList lines{name(row)};
  if (const DecisionKind* kind = decision_kind(kind_id(index))) lines.append(kind->help);
  if (const std::string reason = reason_to_stay(row); !reason.empty()) {
    lines.append(tr("It %1.").arg(qstring(reason)));
  }
  if (row.kind == PlanRowKind::saved && !tree_->can_move(row.saved)) {
    lines.append(
        tr("Its storage is older than the step (a parameter, a buffer or an input): offloading it "
           "frees nothing, so decisions about the layer leave it out."));
  }
  if (const ExplainedPtr& why = explanations_.current(); why && row.kind == PlanRowKind::saved) {
    const auto notes = why->notes.find(name(row).toStdString());
    if (notes != why->notes.end()) {
      for (const std::string& note : notes->second) lines.append(qstring(note));
    }
  }
  return lines.join(QLatin1Char('\n'));
}

QString PlanTreeModel::text(const QModelIndex& index) const {
  const PlanRow& row = row_at(index);
  const RowFigures figures = figures_of(index.internalId());
  switch (index.column()) {
    case name_column:
      return name(row);
    case bytes_column:
      return qstring(format_bytes(row.bytes));
    case decision_column:
      return decision_text(index);
    case first_column:
      return time_or_dash(figures.first);
    case last_column:
      return time_or_dash(figures.last);
    case stall_column:
      return figures.stall > 0 ? qstring(format_time(figures.stall)) : QStringLiteral("–");
    default:
      return {};
  }
}

// None where there is nothing to pin.
QVariant PlanTreeModel::check_state(const QModelIndex& index) const {
  if (index.column() != pin_column) return {};
  const Share& share = shares_[index.internalId()];
  if (share.decisions == 0) return {};
  return share.pinned == 0                 ? Qt::Unchecked
         : share.pinned == share.decisions ? Qt::Checked
                                           : Qt::PartiallyChecked;
}

QVariant PlanTreeModel::sort_value(const QModelIndex& index) const {
  const std::size_t at = index.internalId();
  const RowFigures figures = figures_of(at);
  switch (index.column()) {
    case name_column:
      return row_at(index).place;
    case bytes_column:
      return static_cast<qlonglong>(row_at(index).bytes);
    case first_column:
      return static_cast<qlonglong>(figures.first);
    case last_column:
      return static_cast<qlonglong>(figures.last);
    case stall_column:
      return static_cast<qlonglong>(figures.stall);
    case pin_column:
      return shares_[at].pinned;
    default: {
      const Share share = shares_[at];
      if (row_at(index).kind == PlanRowKind::layer && share.all > 0) {
        return static_cast<double>(share.offloaded + share.recomputed) /
               static_cast<double>(share.all);
      }
      const QString id = kind_id(index);
      const DecisionKind* kind = decision_kind(id);
      return id.isEmpty() ? -1.0 : kind != nullptr && kind->key != u'K' ? 1.0 : 0.0;
    }
  }
}

QVariant PlanTreeModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !tree_) return {};
  switch (role) {
    case Qt::DisplayRole:
      return text(index);
    case Qt::EditRole:
    case kind_role:
      return kind_id(index);
    case Qt::CheckStateRole:
      return check_state(index);
    case Qt::ToolTipRole:
      return tip(index);
    case Qt::AccessibleTextRole:
      if (index.column() == pin_column) {
        const Share& share = shares_[index.internalId()];
        return tr("Pinned: %1 of %2").arg(share.pinned).arg(share.decisions);
      }
      return tr("%1: %2").arg(
          headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(), text(index));
    case Qt::TextAlignmentRole:
      if (index.column() == name_column || index.column() == decision_column) return {};
      return QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case sort_role:
      return sort_value(index);
    case row_role:
      return static_cast<int>(index.internalId());
    case filter_role: {
      const PlanRow& row = row_at(index);
      const DecisionKind* kind = decision_kind(kind_id(index));
      QString text = name(row) + QLatin1Char(' ') + (kind != nullptr ? kind->word : kind_id(index));
      // They have no name of their own to be found by.
      const bool has_name = row.kind == PlanRowKind::layer || row.kind == PlanRowKind::saved;
      if (shares_[index.internalId()].pinned > 0) text += tr(" pinned");
      if (!has_name) text += QLatin1Char(' ') + qstring(layer_words(tree_->trace(), row.layer));
      return text;
    }
    default:
      return {};
  }
}

QVariant PlanTreeModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  static const std::pair<const char*, const char*> kTexts[columns] = {
      {QT_TR_NOOP("Layer"),
       QT_TR_NOOP("Layers in forward order, their parameters, optimizer state and saved tensors")},
      {QT_TR_NOOP("Size"),
       QT_TR_NOOP("Bytes of its storages, each once; of a layer: what it saves. A policy may copy "
                  "a storage several times: Compare counts copies")},
      {QT_TR_NOOP("Decision"),
       QT_TR_NOOP(
           "What the plan does with it: K keeps, O offloads, R recomputes, Shift for a layer's "
           "parameters, Ctrl+Shift for their optimizer state, of which H updates on the host")},
      {QT_TR_NOOP("Pin"),
       QT_TR_NOOP("A search leaves what is pinned as it is: P pins or unpins what is selected")},
      {QT_TR_NOOP("First use"), QT_TR_NOOP("Since step begin, in the planned step; of a layer: of "
                                           "what it saves and no other layer saves too")},
      {QT_TR_NOOP("Last use"), QT_TR_NOOP("Since step begin, in the planned step; of a layer: of "
                                          "what it saves and no other layer saves too")},
      {QT_TR_NOOP("Stall"), QT_TR_NOOP("Time that compute waits for its copies")},
  };
  if (section < 0 || section >= columns) return {};
  if (role == Qt::DisplayRole) return tr(kTexts[section].first);
  if (role == Qt::ToolTipRole) return tr(kTexts[section].second);
  return {};
}

Qt::ItemFlags PlanTreeModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractItemModel::flags(index);
  if (index.isValid() && index.column() == decision_column &&
      reason_to_stay(row_at(index)).empty() && !kind_id(index).isEmpty()) {
    flags |= Qt::ItemIsEditable;
  }
  if (index.isValid() && check_state(index).isValid()) flags |= Qt::ItemIsUserCheckable;
  return flags;
}

bool PlanTreeModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role == Qt::CheckStateRole && index.isValid() && check_state(index).isValid()) {
    const auto targets = all_targets_of(*tree_, {static_cast<std::int32_t>(index.internalId())});
    const bool pins = value.toInt() != Qt::Unchecked;
    return document_.set_pinned_rows(document_.pinned_rows().with(*tree_, targets, pins));
  }
  if (role != Qt::EditRole || !index.isValid() || index.column() != decision_column) return false;
  const DecisionKind* kind = decision_kind(value.toString());
  if (kind == nullptr) return false;
  const auto row = static_cast<std::int32_t>(index.internalId());
  return apply_key(document_, kind->key, kind->of, *tree_, {row});
}

PlanTreeFilter::PlanTreeFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setRecursiveFilteringEnabled(true);
  setSortRole(PlanTreeModel::sort_role);
  // Rows stay where they are while their figures change under the cursor.
  setDynamicSortFilter(false);
}

void PlanTreeFilter::set_text(const QString& text) {
  const QStringList words = text.simplified().split(QLatin1Char(' '), Qt::SkipEmptyParts);
  if (words == words_) return;
  words_ = words;
  invalidateFilter();
}

bool PlanTreeFilter::hasChildren(const QModelIndex& parent) const {
  if (!words_.isEmpty()) return QSortFilterProxyModel::hasChildren(parent);
  return sourceModel()->rowCount(mapToSource(parent)) > 0;
}

bool PlanTreeFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  if (words_.isEmpty()) return true;
  const QString text =
      sourceModel()->index(row, 0, parent).data(PlanTreeModel::filter_role).toString();
  return std::all_of(words_.begin(), words_.end(),
                     [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

}  // namespace stowage::gui
