#include "gui/widgets/search_bar.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <algorithm>

#include "gui/widgets/keys.h"
#include "gui/widgets/value_texts.h"

namespace stowage::gui {

SearchBar::SearchBar(PlanDocument& document, ViewState& state, QWidget* parent)
    : QWidget(parent),
      document_(document),
      state_(state),
      field_(new QLineEdit(this)),
      status_(new QLabel(this)),
      next_(new QToolButton(this)),
      previous_(new QToolButton(this)) {
  setObjectName(QStringLiteral("search"));
  field_->setPlaceholderText(tr("Find ops, layers, saved tensors; #12 is storage 12"));
  field_->setAccessibleName(tr("Search text"));
  field_->setToolTip(tr("Part of a name, or #12 for storage 12; Return goes to the next hit"));
  field_->setClearButtonEnabled(true);
  status_->setAccessibleName(tr("Search result"));
  status_->setMinimumWidth(fontMetrics().horizontalAdvance(tr("1,000,000 of 1,000,000")));
  next_->setText(tr("Next"));
  next_->setToolTip(tr("Next hit (Return, F3)"));
  next_->setAccessibleName(tr("Next hit"));
  previous_->setText(tr("Previous"));
  previous_->setToolTip(tr("Previous hit (Shift+Return, Shift+F3)"));
  previous_->setAccessibleName(tr("Previous hit"));
  auto* close_button = new QToolButton(this);
  close_button->setText(tr("Close"));
  close_button->setToolTip(tr("Close the search (Esc)"));
  close_button->setAccessibleName(tr("Close the search"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(6, 3, 6, 3);
  layout->addWidget(field_, 1);
  layout->addWidget(status_);
  layout->addWidget(previous_);
  layout->addWidget(next_);
  layout->addWidget(close_button);
  connect(field_, &QLineEdit::textChanged, this, &SearchBar::start);
  connect(next_, &QToolButton::clicked, this, &SearchBar::next);
  connect(previous_, &QToolButton::clicked, this, &SearchBar::previous);
  connect(close_button, &QToolButton::clicked, this, &SearchBar::close);
  connect(&document_, &PlanDocument::opened, this, &SearchBar::start);
  connect(&document_, &PlanDocument::changed, this, [this] {
    // Hits are rows of a step that is gone.
    if (document_.current() && document_.current()->rows != rows_) look(false);
  });
  tell();
}

void SearchBar::open() {
  show();
  field_->setFocus(Qt::ShortcutFocusReason);
  field_->selectAll();
}

void SearchBar::close() {
  hide();
  Q_EMIT closed();
}

void SearchBar::start() {
  look(true);
}

void SearchBar::look(bool goes_there) {
  hits_.clear();
  current_ = -1;
  const SimulatedPtr current = document_.current();
  rows_ = current ? current->rows : nullptr;
  const std::string text = field_->text().toStdString();
  if (!current || text.empty()) {
    runner_.cancel();
    return tell();
  }
  runner_.run<std::vector<SearchHit>>(
      tr("Searching"),
      [current, text](const JobContext& job) {
        return search(current->step_trace(), text, job.stop());
      },
      [this, goes_there](std::vector<SearchHit> hits) {
        hits_ = std::move(hits);
        if (hits_.empty() || !goes_there) return tell();
        go_to(0);
      });
  status_->setText(tr("searching"));
}

void SearchBar::go_to(int row) {
  current_ = row;
  const SearchHit& hit = hits_[static_cast<std::size_t>(row)];
  tell();
  state_.select(hit.what);
  Q_EMIT found(hit);  // which puts the cursor there
  state_.centre_selection();
}

void SearchBar::next() {
  if (!hits_.empty()) go_to((current_ + 1) % count());
}

void SearchBar::previous() {
  if (!hits_.empty()) go_to((std::max(current_, 0) + count() - 1) % count());
}

void SearchBar::tell() {
  const bool any = !hits_.empty();
  next_->setEnabled(any);
  previous_->setEnabled(any);
  if (any) {
    status_->setText(tr("%1 of %2").arg(count_text(current_ + 1), count_text(count())));
  } else if (!document_.trace()) {
    status_->setText(tr("nothing is open"));
  } else {
    status_->setText(field_->text().isEmpty() ? QString() : tr("no hit"));
  }
}

void SearchBar::keyPressEvent(QKeyEvent* event) {
  const std::optional<Key> key = key_of(*event, KeyPlace::search);
  if (!key) return QWidget::keyPressEvent(event);
  if (*key == Key::next_hit) return next();
  if (*key == Key::previous_hit) return previous();
  close();
}

}  // namespace stowage::gui
