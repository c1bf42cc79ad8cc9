// The window: docks for all views, menus, and what connects them to the document. Everything slow
// runs in the document's jobs; no slot here takes longer than a frame or two.
#pragma once

#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QMap>
#include <QMenuBar>
#include <functional>

#include "gui/app/job_bar.h"
#include "gui/app/message_bar.h"
#include "gui/app/start_page.h"
#include "gui/model/export_step.h"
#include "gui/model/plan_document.h"
#include "gui/model/view_state.h"
#include "gui/widgets/budget_field.h"
#include "gui/widgets/memory_plot.h"
#include "gui/widgets/search_bar.h"
#include "gui/widgets/timeline_plot.h"

namespace stowage::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  [[nodiscard]] PlanDocument& document() { return document_; }
  [[nodiscard]] ViewState& state() { return state_; }
  [[nodiscard]] TimelinePlot& timeline() { return *timeline_; }
  [[nodiscard]] MemoryPlot& memory() { return *memory_; }
  [[nodiscard]] SearchBar& search() { return *search_; }
  [[nodiscard]] MessageBar& message() { return *message_; }
  // By id ("timeline", "memory", "plan", ..); null = no such view.
  [[nodiscard]] QWidget* view(const QString& id) const;

  // A view in a dock of its own, and in the View menu. The window owns the widget.
  QDockWidget* add_view(const QString& id, const QString& title, QWidget* widget,
                        Qt::DockWidgetArea area);

  // In whatever order: open_files() of the model. Asks nobody about edits of what was open.
  void open_files(const QStringList& files);
  void open_file(const QString& file);
  // Layout and size as they were left; where nothing was left, the default.
  void restore_layout();
  // Time has two thirds of the width, and the timeline is as high as its lanes; it stays so with
  // another window or step until somebody moves a separator.
  void default_layout();

  // What is shown into a file, in the background; errors go to the message bar.
  void export_file(ExportKind kind, const QString& file);
  // A PNG, whatever the name ends in.
  void save_picture(const QString& file);

  // Cursor, selection and axis to the memory peak of what is shown.
  void go_to_peak();
  // Puts a view's dock in front of the others at its place.
  void raise_view(const QString& id);

  // A view's jobs are shown in the status bar and cancelled from there, too.
  void follow(JobRunner& runner) { jobs_->follow(runner); }

  // Runs an event loop until no job runs any more: for pictures and tests.
  void settle();
  [[nodiscard]] bool busy();

  // The menus' actions, for tests and for those who ask what there is: by object name.
  [[nodiscard]] QAction* action(const QString& name) const;

 Q_SIGNALS:
  // The peak was gone to: what is alive there is wanted.
  void peak_shown();

 protected:
  bool event(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  // A key with Alt may lead to a field that is behind a tab, whose view comes to the front then.
  // Tab, and what Qt does when a button is disabled, passes such views by.
  bool eventFilter(QObject* watched, QEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  // Its shortcuts are those of the table of keys.
  QAction* add(QMenu* menu, const QString& name, const QString& text, const QString& tip,
               std::function<void()> slot);
  void make_file_menu();
  void make_edit_menu();
  void make_view_menu();
  void make_plan_menu();
  void make_help_menu();
  void make_toolbar();
  void make_status();
  void connect_views();

  void fill_recent(QMenu* menu);
  void ask_for_file();
  void save_plan(bool ask);
  // Where the plan was edited and is not saved, asks whether to save it, ahead of what drops it.
  [[nodiscard]] bool may_drop_plan();
  void copy_command();
  void copy_run_command();
  void copy(const std::string& command);
  void plan_for_budget();
  void find_plan(Bytes budget, const std::string& text);
  void show_about();
  void say_status();
  void say_outcome(const planner::PlanOutcome& outcome);
  [[nodiscard]] simulator::PeakKind counter() const;
  [[nodiscard]] std::optional<Nanoseconds> time_of(EventId event) const;
  void refresh(bool anew);
  void keep_place();
  void show_ghost(const SimulatedPtr& before, const StepPicturePtr& now);
  void share_room();
  void set_title();
  void say_saved();
  [[nodiscard]] StepPicturePtr shown() const;
  [[nodiscard]] bool views_busy() const;

  ViewState state_;
  TimelinePlot* timeline_ = nullptr;
  MemoryPlot* memory_ = nullptr;
  StartPage* start_ = nullptr;  // over the curve while nothing is open
  SearchBar* search_ = nullptr;
  MessageBar* message_ = nullptr;
  JobBar* jobs_ = nullptr;
  QLabel* status_ = nullptr;
  QLabel* saved_ = nullptr;  // the plan's file
  BudgetField* budget_ = nullptr;
  QComboBox* shown_ = nullptr;
  QMenuBar* menu_bar_ = nullptr;
  QMenu* view_menu_ = nullptr;
  // Of a widget; null: nothing is in front of it, or it is in none.
  [[nodiscard]] QDockWidget* behind_a_tab(const QObject* object) const;

  QMap<QString, QDockWidget*> docks_;
  bool shares_room_ = false;  // nobody has moved a separator of the default layout
  // Last: jobs end ahead of the views that they report to.
  JobRunner exporting_;
  SimulatedPtr current_;                 // that selections are of
  std::optional<Calibration> recorded_;  // of the trace as it was opened
  PlanDocument document_;
};

}  // namespace stowage::gui
