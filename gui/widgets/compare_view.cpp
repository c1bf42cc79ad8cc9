#include "gui/widgets/compare_view.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/value_texts.h"

namespace stowage::gui {
namespace {

constexpr int kColumns = 4;
constexpr int kMostWidth = 16;  // of a value, in letters

}  // namespace

CompareView::CompareView(PlanDocument& document, ViewState& state, QWidget* parent)
    : QWidget(parent),
      document_(document),
      choice_(new QComboBox(this)),
      pin_(new QPushButton(this)),
      rows_(new QTreeWidget),
      curves_(new CurvePair(state)),
      job_(this) {
  setObjectName(QStringLiteral("compare"));
  setAccessibleName(tr("Compare"));
  choice_->addItems({tr("the plan with what it was before"), tr("the plan with nothing moved"),
                     tr("measured with predicted"), tr("the plan with another file…")});
  choice_->setAccessibleName(tr("What is compared"));
  choice_->setToolTip(
      tr("Another file: a plan for this trace, a trace, or a result of stowage "
         "execute or verify"));
  pin_->setCheckable(true);
  pin_->setText(tr("Set as baseli&ne"));
  pin_->setToolTip(tr("Keeps the plan as it is now as what later ones are compared with"));
  rows_->setColumnCount(kColumns);
  rows_->setRootIsDecorated(false);
  rows_->setUniformRowHeights(true);
  rows_->setAccessibleName(tr("Figures and their differences"));
  // The names give way where there is little room, and take what is left.
  rows_->header()->setStretchLastSection(false);
  rows_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  auto* split = new QSplitter(Qt::Vertical);
  split->addWidget(rows_);
  split->addWidget(curves_);
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 2);
  split->setChildrenCollapsible(false);
  stack_ = new EmptyStack(split, this);
  auto* top = new QHBoxLayout;
  auto* label = new QLabel(tr("C&ompare"), this);
  label->setBuddy(choice_);
  top->addWidget(label);
  top->addWidget(choice_, 1);
  top->addWidget(pin_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top);
  layout->addWidget(stack_, 1);
  connect(choice_, &QComboBox::activated, this, [this](int at) {
    if (at == static_cast<int>(What::file)) return ask_for_file();
    refresh();
  });
  connect(pin_, &QPushButton::clicked, this, [this](bool on) {
    if (on) {
      document_.pin();
    } else {
      document_.unpin();
    }
  });
  connect(&document_, &PlanDocument::opened, this, [this] {
    if (document_.measured()) choice_->setCurrentIndex(static_cast<int>(What::measured));
  });
  connect(&document_, &PlanDocument::changed, this, &CompareView::refresh);
  refresh();
}

void CompareView::compare_with(What what) {
  choice_->setCurrentIndex(static_cast<int>(what));
  refresh();
}

void CompareView::ask_for_file() {
  const QString file = QFileDialog::getOpenFileName(
      this, tr("Compare with"), QString(),
      tr("Plans, traces and results (*.json *.json.gz);;All files (*)"));
  if (!file.isEmpty()) return compare_with_file(file);
  refresh();
}

void CompareView::compare_with_file(const QString& file) {
  choice_->setCurrentIndex(static_cast<int>(What::file));
  // What was being replayed gives way to the file.
  made_of_.reset();
  made_ = {};
  job_.run<Result<Opened>>(
      tr("Opening %1").arg(file),
      [path = file.toStdString(), trace = document_.trace()](const JobContext& job) {
        return open_file(path, trace, job);
      },
      [this, file](Result<Opened> opened) {
        if (!opened) return Q_EMIT failed(opened.error());
        other_ = std::move(opened).value();
        other_file_ = QFileInfo(file).fileName();
        const QString trace = QString::fromStdString(other_->trace->path);
        const bool is_of_another =
            document_.trace() && other_->trace->sha256 != document_.trace()->sha256;
        if (is_of_another && QFileInfo(trace) != QFileInfo(file)) {
          other_file_ = tr("%1 on %2").arg(other_file_, QFileInfo(trace).fileName());
        }
        refresh();
      });
}

void CompareView::refresh() {
  if (late_.put_off()) {
    // Nor is the step before held for it.
    made_of_.reset();
    made_ = {};
    curves_->show_curves({}, {}, {}, {});
    return;
  }
  rows_->clear();
  compared_.clear();
  pin_->setChecked(document_.has_pin());
  const SimulatedPtr& now = document_.current();
  pin_->setEnabled(now != nullptr);
  if (!now) {
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  const Side current{tr("now"), facts_of(*now), document_.planned()};
  switch (static_cast<What>(choice_->currentIndex())) {
    case What::baseline: {
      const SimulatedPtr& before = document_.baseline();
      if (!before) {
        return stack_->set_reason(
            tr("There is nothing before this plan yet. Change the plan or search one, or choose "
               "“nothing moved” or another file above."));
      }
      make_side(before, [before, recorded = document_.recorded()](const JobContext&) {
        return Replayed{before, planned_view(*before, recorded)};
      });
      return show_sides(
          {document_.has_pin() ? tr("baseline") : tr("before"), facts_of(*before), made_.view},
          current);
    }
    case What::resident: {
      // Replayed like the plan, as an empty one: on one clock, whatever the recording's were, and
      // with the executor's hooks, which run in any plan and cost some microseconds; in the memory
      // of the plan.
      PlanState nothing;
      nothing.plan.placement = now->plan().placement;
      auto state = std::make_shared<const PlanState>(std::move(nothing));
      make_side(now->trace, [trace = now->trace, recorded = document_.recorded(),
                             state](const JobContext& job) {
        auto replayed = simulate(trace, state, job.stop());
        if (!replayed) return Replayed{};
        return Replayed{*replayed, planned_view(**replayed, recorded)};
      });
      if (!made_.simulated) {
        return stack_->set_reason(tr("The step in which nothing moves is being replayed."));
      }
      return show_sides({tr("nothing moved"), facts_of(*made_.simulated), made_.view}, current);
    }
    case What::measured: {
      const std::optional<RunResult>& run = document_.measured();
      if (!run) {
        return stack_->set_reason(tr(
            "Nothing was measured yet. Verify on this machine in the Plan menu runs the plan, or "
            "open what stowage execute --json or verify --json printed."));
      }
      std::vector<report::Fact> predicted = facts_of(run->predicted);
      if (predicted.empty()) predicted = facts_of(*now);
      return show_sides({tr("predicted"), std::move(predicted), document_.planned()},
                        {tr("measured"), facts_of(run->measured), nullptr});
    }
    case What::file:
      break;
  }
  show_other(current);
}

void CompareView::show_other(const Side& current) {
  if (!other_) {
    return stack_->set_reason(
        job_.busy() ? tr("The file is being opened.")
                    : tr("No file was chosen. Choose “another file” above again: a plan for this "
                         "trace, a trace, or a result."));
  }
  Side before{other_file_, facts_of(*other_->simulated), other_->planned};
  Side after = current;
  if (other_->trace != document_.trace()) {
    const auto theirs = report::facts_of(other_->trace->trace);
    const auto ours = report::facts_of(document_.trace()->trace);
    if (theirs && ours) {
      const auto add = [](Side& side, const std::vector<report::Fact>& facts) {
        for (report::Fact fact : facts) {
          fact.section = fact.section.empty() ? "trace" : "trace, " + fact.section;
          side.facts.push_back(std::move(fact));
        }
      };
      add(before, *theirs);
      add(after, *ours);
    }
  }
  show_sides(before, after);
}

void CompareView::make_side(std::shared_ptr<const void> of,
                            std::function<Replayed(const JobContext&)> make) {
  if (made_of_ == of) return;
  made_of_ = std::move(of);
  made_ = {};
  job_.run<Replayed>(tr("Comparing"), std::move(make), [this, of = made_of_](Replayed made) {
    if (made_of_ != of) return;
    made_ = std::move(made);
    refresh();
  });
}

void CompareView::show_sides(const Side& before, const Side& after) {
  stack_->set_reason({});
  compared_ = compared(before.facts, after.facts);
  fill(compared_, before.name, after.name);
  curves_->show_curves(before.view, before.name, after.view, after.name);
  curves_->setVisible(!curves_->empty());
}

void CompareView::fill(const std::vector<ComparedRow>& rows, const QString& before,
                       const QString& after) {
  rows_->setHeaderLabels({tr("Figure"), before, after, tr("Difference")});
  QFont bold = rows_->font();
  bold.setBold(true);
  std::string section;
  for (const ComparedRow& row : rows) {
    if (row.heading != section) {
      section = row.heading;
      auto* heading = new QTreeWidgetItem(rows_, {QString::fromStdString(section)});
      heading->setFont(0, bold);
      heading->setFirstColumnSpanned(true);
    }
    // Arrows beside the signs: no colour says which is better.
    const QString arrow = row.sign > 0   ? QStringLiteral("▲ ")
                          : row.sign < 0 ? QStringLiteral("▼ ")
                                         : QString();
    auto* item = new QTreeWidgetItem(
        rows_, {QString::fromStdString(row.name), QString::fromStdString(row.before),
                QString::fromStdString(row.after),
                arrow + QString::fromStdString(row.whole_difference())});
    item->setToolTip(0, item->text(0));
    for (int i = 1; i < kColumns; ++i) {
      item->setTextAlignment(i, Qt::AlignRight | Qt::AlignVCenter);
      item->setToolTip(i, row.exact.empty() ? item->text(i) : QString::fromStdString(row.exact));
    }
    item->setData(0, Qt::AccessibleTextRole,
                  tr("%1: %2, then %3, %4")
                      .arg(item->text(0), item->text(1), item->text(2),
                           QString::fromStdString(row.whole_difference())));
  }
  // A value of a line's length is cut; its tool tip has all of it.
  const int most = kMostWidth * fontMetrics().horizontalAdvance(QLatin1Char('m'));
  for (int i = 1; i < kColumns; ++i) {
    rows_->resizeColumnToContents(i);
    rows_->setColumnWidth(i, std::min(rows_->columnWidth(i), most));
  }
}

}  // namespace stowage::gui
