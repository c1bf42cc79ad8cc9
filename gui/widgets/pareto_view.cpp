#include "gui/widgets/pareto_view.h"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <tuple>

#include "gui/model/same_machine.h"
#include "gui/widgets/value_texts.h"
#include "planner/budget.h"
#include "report/words.h"

namespace stowage::gui {
namespace {

constexpr int kHandPlans = 1'000'000;  // from there on points are rows of the plans made by hand

QString figures(const QString& name, Bytes peak, Nanoseconds step, Nanoseconds resident_step,
                Nanoseconds stall, Bytes host) {
  return QObject::tr("%1\npeak %2\nstep %3 (%4 against nothing moved)\nstall %5\nhost %6")
      .arg(name, bytes_text(peak), time_text(step),
           QString::fromStdString(report::relative(step, resident_step)), time_text(stall),
           bytes_text(host));
}

}  // namespace

ParetoView::ParetoView(PlanDocument& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      search_(document, this),
      hand_plans_(document, this),
      start_(new QPushButton(tr("&Compute"), this)),
      cancel_(new QPushButton(tr("Cancel"), this)),
      progress_(new QProgressBar(this)),
      status_(new QLabel(this)),
      plot_(new ParetoPlot),
      stack_(new EmptyStack(plot_, this)) {
  setObjectName(QStringLiteral("pareto"));
  setAccessibleName(tr("Memory against time"));
  start_->setToolTip(
      tr("Finds the best plan for budgets between the least possible peak and the "
         "peak of the step in which nothing moves"));
  cancel_->setToolTip(tr("Stops; the points that were found stay"));
  progress_->setAccessibleName(tr("Progress of the search"));
  progress_->setToolTip(tr("Share of the policies and budgets that were looked at"));
  progress_->setMaximumWidth(12 * fontMetrics().height());
  progress_->setRange(0, 1000);
  progress_->setTextVisible(false);
  status_->setAccessibleName(tr("State of the search"));
  status_->setWordWrap(true);
  auto* top = new QHBoxLayout;
  top->addWidget(start_);
  top->addWidget(cancel_);
  top->addWidget(progress_);
  top->addWidget(status_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(top);
  layout->addWidget(stack_, 1);

  connect(start_, &QPushButton::clicked, this, [this] {
    search_.start();
    plot_->setFocus(Qt::OtherFocusReason);
  });
  connect(cancel_, &QPushButton::clicked, &search_, &ParetoSearch::cancel);
  connect(&search_, &ParetoSearch::changed, this, &ParetoView::refresh);
  connect(&search_, &ParetoSearch::failed, this, &ParetoView::failed);
  connect(&search_.job(), &JobRunner::progressed, this, [this](double part, const QString& what) {
    progress_->setValue(static_cast<int>(part * 1000));
    status_->setText(tr("%1 plans so far, now %2").arg(search_.points().size()).arg(what));
  });
  connect(&document_, &PlanDocument::changed, this, &ParetoView::refresh);
  connect(&hand_plans_, &HandPlans::changed, this, &ParetoView::refresh);
  connect(plot_, &ParetoPlot::load_requested, this, [this](int point) {
    if (point >= kHandPlans) {
      hand_plans_.load(static_cast<std::size_t>(point - kHandPlans));
    } else {
      search_.load(static_cast<std::size_t>(point));
    }
  });
  refresh();
}

QString ParetoView::status_text() const {
  const auto& points = search_.points();
  if (search_.busy()) return status_->text();
  if (points.empty()) return {};
  const QString count = tr("%1 plans").arg(points.size());
  if (!search_.complete()) return tr("%1; stopped before all budgets were looked at").arg(count);
  return tr("%1; no plan has a peak below %2").arg(count, bytes_text(search_.floor()));
}

// Those in the memory and on the machine of what is shown.
void ParetoView::add_hand_plans(ParetoPlot::Content& content) const {
  const SimulatedPtr& now = document_.current();
  for (std::size_t i = 0; i < hand_plans_.plans().size(); ++i) {
    const HandPlan& plan = hand_plans_.plans()[i];
    if (!same_machine(plan.machine, now->trace->trace.calibration) ||
        plan.state->plan.placement != now->plan().placement) {
      continue;
    }
    ParetoPlot::Mark mark;
    mark.kind = ParetoPlot::Mark::Kind::hand;
    mark.label = plan.name;
    mark.peak = planner::peak_of(plan.predicted, search_.counter());
    mark.step = plan.predicted.step_ns;
    mark.point = kHandPlans + static_cast<int>(i);
    mark.figures = figures(plan.name, mark.peak, mark.step, content.resident_step,
                           plan.predicted.stall_ns, plan.predicted.host_bytes) +
                   tr("\nclick or Return loads it");
    content.marks.push_back(std::move(mark));
  }
}

void ParetoView::refresh() {
  const bool busy = search_.busy();
  start_->setEnabled(document_.trace() && !busy);
  start_->setText(search_.points().empty() ? tr("&Compute") : tr("&Compute again"));
  cancel_->setVisible(busy);
  progress_->setVisible(busy);
  if (!busy) progress_->setValue(0);
  status_->setText(status_text());
  const SimulatedPtr& now = document_.current();
  if (!now) {
    return stack_->set_reason(tr("No trace is open. Open one with Ctrl+O, or record a step."));
  }
  if (search_.points().empty() && search_.stopped()) {
    return stack_->set_reason(
        tr("Cancelled before the first plan was found. Compute starts anew."));
  }
  if (search_.points().empty() && !busy) {
    return stack_->set_reason(
        tr("Plans for other budgets are not computed yet. Compute finds the best plan for %1 "
           "budgets and shows them beside known policies; it takes some seconds and the window "
           "stays usable.")
            .arg(ParetoSearch::kBudgets));
  }
  stack_->set_reason({});

  const simulator::PeakKind on = search_.counter();
  const Nanoseconds resident_step = now->trace->at_once(now->plan().placement).step_ns;
  ParetoPlot::Content content;
  content.memory_title = tr("peak %1 memory").arg(QString::fromUtf8(simulator::name_of(on)));
  if (now->trace->machine == MachineKind::assumed) content.memory_title += tr(" (assumed machine)");
  content.bounds = search_.bounds();
  content.floor = search_.floor();
  content.budget = now->plan().budget.device;
  content.resident_step = resident_step;
  for (std::size_t i = 0; i < search_.points().size(); ++i) {
    const ParetoPoint& point = search_.points()[i];
    ParetoPlot::Mark mark;
    const QString name = QString::fromStdString(point.name);
    mark.kind = point.kind == ParetoPoint::Kind::planned ? ParetoPlot::Mark::Kind::planned
                                                         : ParetoPlot::Mark::Kind::policy;
    if (name == QLatin1String("policy resident")) mark.kind = ParetoPlot::Mark::Kind::resident;
    if (point.kind == ParetoPoint::Kind::policy) mark.label = name.section(QLatin1Char(' '), 1);
    mark.peak = point.peak;
    mark.step = point.step;
    mark.best = point.best;
    mark.point = static_cast<int>(i);
    mark.figures = figures(name, point.peak, point.step, resident_step, point.stall, point.host) +
                   tr("\nclick or Return loads it");
    content.marks.push_back(std::move(mark));
  }
  add_hand_plans(content);
  ParetoPlot::Mark current;
  current.kind = ParetoPlot::Mark::Kind::current;
  current.peak = planner::peak_of(now->result, on);
  current.step = now->result.step_ns;
  current.label = tr("current plan");
  current.figures = figures(current.label, current.peak, current.step, resident_step,
                            now->result.stall_ns, now->result.host_bytes);
  content.marks.push_back(std::move(current));
  std::stable_sort(content.marks.begin(), content.marks.end(), [](const auto& a, const auto& b) {
    return std::tie(a.peak, a.step) < std::tie(b.peak, b.step);
  });
  plot_->show_content(std::move(content));
}

}  // namespace stowage::gui
