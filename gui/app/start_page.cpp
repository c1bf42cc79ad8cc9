#include "gui/app/start_page.h"

#include <QFileInfo>
#include <QLabel>
#include <QScrollArea>

#include "gui/app/recent_files.h"
#include "gui/app/samples.h"

namespace stowage::gui {
namespace {

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont bold = label->font();
  bold.setBold(true);
  label->setFont(bold);
  return label;
}

}  // namespace

StartPage::StartPage(QWidget* parent) : QWidget(parent), recent_(new QVBoxLayout) {
  setObjectName(QStringLiteral("start"));
  setAccessibleName(tr("Start"));
  setAutoFillBackground(true);
  auto* files = new QVBoxLayout;
  files->addWidget(heading(tr("Files")));
  QToolButton* open = add(*files, tr("Open a file..."), tr("Open a trace, a plan or a result"));
  open->setObjectName(QStringLiteral("start_open"));
  connect(open, &QToolButton::clicked, this, &StartPage::open_requested);
  auto* hint = new QLabel(tr("or drop files anywhere in the window"));
  hint->setWordWrap(true);
  files->addWidget(hint);
  files->addSpacing(fontMetrics().height());
  files->addWidget(heading(tr("Opened last")));
  files->addLayout(recent_);
  files->addStretch(1);
  auto* list = new QVBoxLayout;
  list->addWidget(heading(tr("Samples")));
  const QList<Sample> known = samples();
  for (const Sample& sample : known) add_file(*list, sample.title, sample.path);
  if (known.isEmpty()) list->addWidget(new QLabel(tr("No samples are installed")));
  list->addStretch(1);
  auto* inside = new QWidget;
  auto* columns = new QHBoxLayout(inside);
  columns->addLayout(files, 1);
  columns->addLayout(list, 1);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inside);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
  refresh();
}

QToolButton* StartPage::add(QBoxLayout& list, const QString& text, const QString& tip) {
  auto* button = new QToolButton;
  button->setText(QString(text).replace('&', QStringLiteral("&&")));
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setToolTip(tip);
  button->setAccessibleName(text);
  list.addWidget(button, 0, Qt::AlignLeft);
  return button;
}

void StartPage::add_file(QBoxLayout& list, const QString& title, const QString& path) {
  QToolButton* button = add(list, title, path);
  connect(button, &QToolButton::clicked, this, [this, path] { Q_EMIT file_chosen(path); });
}

void StartPage::refresh() {
  while (QLayoutItem* item = recent_->takeAt(0)) {
    // It may be the one that was clicked.
    if (item->widget() != nullptr) {
      item->widget()->hide();
      item->widget()->deleteLater();
    }
    delete item;
  }
  const QStringList files = recent_files();
  for (const QString& file : files) add_file(*recent_, QFileInfo(file).fileName(), file);
  if (files.isEmpty()) recent_->addWidget(new QLabel(tr("No file was opened yet")));
}

}  // namespace stowage::gui
