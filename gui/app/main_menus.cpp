// The menus of the main window, its tool bar and its status bar.
#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QStatusBar>
#include <QStyle>
#include <QToolBar>
#include <QVBoxLayout>

#include "gui/app/export_menu.h"
#include "gui/app/key_list.h"
#include "gui/app/main_window.h"
#include "gui/app/named_action.h"
#include "gui/app/recent_files.h"
#include "gui/app/samples.h"
#include "gui/widgets/save_dialog.h"
#include "gui/widgets/value_texts.h"
#include "planner/policy.h"
#include "traces/build_info.h"

namespace stowage::gui {

QAction* MainWindow::add(QMenu* menu, const QString& name, const QString& text, const QString& tip,
                         std::function<void()> slot) {
  QAction* action = menu->addAction(text);
  set_up_action(*action, name, tip);
  connect(action, &QAction::triggered, this, [slot = std::move(slot)] { slot(); });
  return action;
}

void MainWindow::make_file_menu() {
  QMenu* menu = menu_bar_->addMenu(tr("&File"));
  add(menu, "open", tr("&Open..."), tr("Open a trace, a plan or a result"),
      [this] { ask_for_file(); });
  QMenu* recent = menu->addMenu(tr("Open &recent"));
  recent->setObjectName(QStringLiteral("recent"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] { fill_recent(recent); });
  add(menu, "reload", tr("Re&load"), tr("Read the file again"), [this] { document_.reload(); });
  menu->addSeparator();
  add(menu, "save", tr("&Save plan"), tr("Write the plan to its file"),
      [this] { save_plan(false); });
  add(menu, "save_as", tr("Save plan &as..."), tr("Write the plan to another file"),
      [this] { save_plan(true); });
  fill_export_menu(*menu->addMenu(tr("&Export")), *this);
  menu->addSeparator();
  add(menu, "close", tr("&Close file"), tr("Close what is open"), [this] {
    if (may_drop_plan()) document_.close();
  });
  add(menu, "quit", tr("&Quit"), tr("End the program"), [this] { close(); });
}

void MainWindow::fill_recent(QMenu* menu) {
  menu->clear();
  const QStringList files = recent_files();
  for (const QString& file : files) {
    QAction* action = menu->addAction(QString(file).replace('&', QStringLiteral("&&")));
    connect(action, &QAction::triggered, this, [this, file] {
      if (may_drop_plan()) open_file(file);
    });
  }
  if (files.isEmpty()) {
    menu->addAction(tr("No file was opened yet"))->setEnabled(false);
    return;
  }
  menu->addSeparator();
  connect(menu->addAction(tr("Forget these")), &QAction::triggered, this, [] { forget_files(); });
}

void MainWindow::ask_for_file() {
  if (!may_drop_plan()) return;
  const QStringList files = QFileDialog::getOpenFileNames(
      this, tr("Open"), QFileInfo(document_.file()).absolutePath(),
      tr("Traces, plans and results (*.json *.json.gz *.gz);;All files (*)"));
  open_files(files);
}

void MainWindow::save_plan(bool ask) {
  const SimulatedPtr& current = document_.current();
  if (!current) return message_->show_note(tr("There is no plan to save: open a trace first."));
  QString file = QString::fromStdString(document_.plan_file());
  if (ask || file.isEmpty()) {
    file = ask_where_to_save(this, tr("Save the plan"),
                             file.isEmpty() ? QStringLiteral("plan.json") : file,
                             QStringLiteral("json"), tr("Plans (*.json)"));
  }
  if (file.isEmpty()) return;
  const Status saved = document_.save_plan(file);
  if (!saved) return message_->show_error(saved.error());
  remember_file(file);
  set_title();
  statusBar()->showMessage(tr("Saved %1").arg(file), 5000);
}

bool MainWindow::may_drop_plan() {
  if (!document_.current() || document_.undo_stack().isClean()) return true;
  QMessageBox question(QMessageBox::Question, tr("Stowage"),
                       tr("The plan was edited and is not saved."),
                       QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
  question.setObjectName(QStringLiteral("unsaved"));
  question.setDefaultButton(QMessageBox::Save);
  const int answer = question.exec();
  if (answer == QMessageBox::Save) save_plan(false);
  return answer == QMessageBox::Discard || document_.undo_stack().isClean();
}

void MainWindow::make_edit_menu() {
  QMenu* menu = menu_bar_->addMenu(tr("&Edit"));
  QAction* undo = document_.undo_stack().createUndoAction(this);
  set_up_action(*undo, QStringLiteral("undo"), tr("Take the last edit of the plan back"));
  QAction* redo = document_.undo_stack().createRedoAction(this);
  set_up_action(*redo, QStringLiteral("redo"), tr("Make the edit that was taken back again"));
  menu->addActions({undo, redo});
  menu->addSeparator();
  add(menu, "find", tr("&Find..."), tr("Find ops, layers and saved tensors"),
      [this] { search_->open(); });
  add(menu, "find_next", tr("Find &next"), tr("Next hit"), [this] { search_->next(); });
  add(menu, "find_previous", tr("Find &previous"), tr("Previous hit"),
      [this] { search_->previous(); });
  menu->addSeparator();
  add(menu, "copy_command", tr("&Copy as command"), tr("The command line that gives what is shown"),
      [this] { copy_command(); });
  add(menu, "copy_run_command", tr("Copy the command that &runs the plan"),
      tr("stowage execute with the saved plan, for a terminal on this machine"),
      [this] { copy_run_command(); });
}

void MainWindow::make_view_menu() {
  QMenu* menu = menu_bar_->addMenu(tr("&View"));
  add(menu, "go_to_peak", tr("Go to the memory &peak"), tr("P in a plot"),
      [this] { go_to_peak(); });
  add(menu, "fit", tr("Show the whole &step"), tr("Home in a plot"), [this] {
    TimeAxis axis = state_.axis();
    axis.fit();
    state_.set_axis(axis);
  });
  menu->addSeparator();
  // The docks' own actions come here as views are added.
  view_menu_ = menu->addMenu(tr("&Views"));
  add(menu, "default_layout", tr("&Restore the default layout"),
      tr("All views where they were at first"), [this] { default_layout(); });
}

void MainWindow::make_plan_menu() {
  QMenu* menu = menu_bar_->addMenu(tr("&Plan"));
  add(menu, "plan", tr("&Plan for a budget"), tr("Search the best plan within the budget"),
      [this] { plan_for_budget(); });
  QMenu* policies = menu->addMenu(tr("&Try a policy"));
  policies->setObjectName(QStringLiteral("policies"));
  policies->setToolTipsVisible(true);
  for (const planner::PolicyInfo& policy : planner::policies()) {
    if (policy.name == "auto") continue;
    const QString name = QString::fromStdString(policy.name);
    add(policies, QStringLiteral("policy_") + name, name, QString::fromStdString(policy.summary),
        [this, policy = policy.name] { document_.try_policy(policy); });
  }
  add(menu, "finish", tr("Take the &best plan so far"), tr("End the running search early"),
      [this] { document_.finish_search(); });
  add(menu, "cancel", tr("&Cancel what runs"), tr("What is shown stays as it is"),
      [this] { jobs_->cancel(); });
  menu->addSeparator();
  add(menu, "pin", tr("Compare with &this result"), tr("Keep it as the baseline"),
      [this] { document_.pin(); });
  add(menu, "unpin", tr("Compare with the &previous result"), tr("Forget the kept baseline"),
      [this] { document_.unpin(); });
}

void MainWindow::make_help_menu() {
  QMenu* menu = menu_bar_->addMenu(tr("&Help"));
  QMenu* list = menu->addMenu(tr("Open a &sample"));
  list->setObjectName(QStringLiteral("samples"));
  for (const Sample& sample : samples()) {
    QAction* action = list->addAction(sample.title);
    action->setData(sample.path);
    connect(action, &QAction::triggered, this, [this, path = sample.path] { open_file(path); });
  }
  if (list->isEmpty()) list->addAction(tr("No samples are installed"))->setEnabled(false);
  menu->addSeparator();
  add(menu, "keys", tr("&Keys"), tr("What the keys and the mouse do"),
      [this] { show_key_list(this); });
  add(menu, "about", tr("&About Stowage"), tr("Version"), [this] { show_about(); });
}

void MainWindow::show_about() {
  message_->show_note(tr("Stowage %1: where every tensor of a training step lives, and where it "
                         "should. Built with %2, Qt %3.")
                          .arg(QString::fromUtf8(kVersion.data()),
                               QString::fromUtf8(kCompiler.data()), QLatin1String(qVersion())));
}

void MainWindow::make_toolbar() {
  auto* bar = new QToolBar(tr("Budget"), this);
  bar->setObjectName(QStringLiteral("toolbar"));
  bar->addAction(action(QStringLiteral("open")));
  bar->addSeparator();
  auto* label = new QLabel(tr("&Budget "), bar);
  budget_ = new BudgetField(document_, bar);
  budget_->setObjectName(QStringLiteral("budget"));
  budget_->setMaximumWidth(fontMetrics().horizontalAdvance(QStringLiteral("0")) * 24);
  label->setBuddy(budget_);
  connect(budget_, &BudgetField::refused, message_, &MessageBar::show_error);
  connect(budget_, &QLineEdit::returnPressed, this, [this] {
    if (!budget_->text().trimmed().isEmpty()) plan_for_budget();
  });
  bar->addWidget(label);
  bar->addWidget(budget_);
  bar->addWidget(new QLabel(tr(" of "), bar));
  auto* counter = new CounterField(document_, bar);
  counter->setObjectName(QStringLiteral("counter"));
  bar->addWidget(counter);
  bar->addAction(action(QStringLiteral("plan")));
  bar->addSeparator();
  bar->addWidget(new QLabel(tr("Show "), bar));
  shown_ = new QComboBox(bar);
  shown_->setObjectName(QStringLiteral("shown"));
  shown_->addItems({tr("automatic"), tr("recorded step"), tr("planned step")});
  shown_->setAccessibleName(tr("Step that is shown"));
  shown_->setToolTip(
      tr("automatic: the planned step. While nothing is planned or assumed, a recording on the CPU "
         "is shown as it was measured; one on a GPU is replayed, since its events have the times "
         "of their launches."));
  connect(shown_, &QComboBox::currentIndexChanged, this,
          [this](int index) { state_.set_shown(static_cast<Shown>(index)); });
  bar->addWidget(shown_);
  addToolBar(Qt::TopToolBarArea, bar);
}

void MainWindow::make_status() {
  status_ = new QLabel(this);
  status_->setAccessibleName(tr("What is under the cursor"));
  status_->setTextFormat(Qt::PlainText);
  status_->setMinimumWidth(10);
  jobs_ = new JobBar(this);
  for (JobRunner* runner :
       {&document_.loading(), &document_.searching(), &document_.simulating(), &exporting_}) {
    jobs_->follow(*runner);
  }
  connect(jobs_, &JobBar::cancelled, this, [this](const QString& title) {
    message_->show_note(title.isEmpty()
                            ? tr("Nothing runs that could be cancelled.")
                            : tr("Cancelled: %1. What is shown stays as it was.").arg(title));
  });
  saved_ = new QLabel(this);
  saved_->setObjectName(QStringLiteral("saved"));
  saved_->setAccessibleName(tr("File of the plan"));
  saved_->setTextFormat(Qt::PlainText);
  statusBar()->addWidget(status_, 1);
  statusBar()->addPermanentWidget(saved_);
  statusBar()->addPermanentWidget(jobs_);
}

}  // namespace stowage::gui
