#include "gui/app/screenshot.h"

#include <QApplication>
#include <QEventLoop>
#include <QLayout>
#include <QPixmap>
#include <optional>

#include "gui/app/main_window.h"
#include "gui/widgets/compare_view.h"
#include "gui/widgets/details_view.h"
#include "gui/widgets/pareto_view.h"

namespace stowage::gui {
namespace {

// Opens the files and waits for them.
std::optional<Error> open_and_wait(PlanDocument& document, const QStringList& files) {
  std::optional<Error> failure;
  QEventLoop loop;
  const auto failed = QObject::connect(&document, &PlanDocument::failed, &loop,
                                       [&](const Error& error) { failure = error; });
  QObject::connect(&document.loading(), &JobRunner::finished, &loop, &QEventLoop::quit);
  document.open(files);
  loop.exec();
  QObject::disconnect(failed);
  return failure;
}

}  // namespace

Error cannot_write_picture(const QString& file) {
  return {ErrorCode::environment, "the picture cannot be written", file.toStdString(), "",
          "name a file in a folder that is there and that you may write into, on a disk that is "
          "not full"};
}

Status take_screenshot(MainWindow& window, const Options& options) {
  QWidget* view = options.view.isEmpty() ? nullptr : window.view(options.view);
  if (!options.view.isEmpty() && view == nullptr) {
    return Error{ErrorCode::usage, "this build has no view " + options.view.toStdString(), "", "",
                 ""};
  }
  if (const auto failure = open_and_wait(window.document(), options.files)) return *failure;
  // The least height is that of now, not that of the words which stood there ahead of the file.
  QApplication::sendPostedEvents(nullptr, QEvent::LayoutRequest);
  window.layout()->activate();
  window.resize(options.size);
  window.setAttribute(Qt::WA_DontShowOnScreen);
  window.show();
  // Behind a tab it would show what was open before.
  if (view != nullptr) window.raise_view(options.view);
  window.settle();
  // What a view shows only when somebody asks for it.
  if (auto* pareto = qobject_cast<ParetoView*>(view)) pareto->search().start();
  if (qobject_cast<DetailsView*>(view) != nullptr) window.go_to_peak();
  auto* compare = qobject_cast<CompareView*>(view);
  if (compare != nullptr && !compare->reason().isEmpty()) {
    compare->compare_with(CompareView::What::resident);
  }
  window.settle();
  // One view is painted at the size that was asked for, whatever the window would give it.
  if (view != nullptr) view->resize(options.size);
  const QPixmap picture = view != nullptr ? view->grab() : window.grab();
  if (!picture.save(options.screenshot, "PNG")) {
    return cannot_write_picture(options.screenshot);
  }
  return Unit{};
}

}  // namespace stowage::gui
