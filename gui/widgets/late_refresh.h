// For views behind the tab of another one: what nobody sees is made when it is shown. An edit then
// costs what is on the screen, not what might be.
//
//   void AliveView::refresh() {
//     if (late_.put_off()) return;
#pragma once

#include <QDockWidget>
#include <QObject>
#include <QPointer>
#include <QWidget>
#include <functional>

namespace stowage::gui {

class LateRefresh : public QObject {
  Q_OBJECT
 public:
  // `refresh` is called when the view is shown again; it may ask put_off().
  LateRefresh(QWidget& view, std::function<void()> refresh);

  // The view's dock is not to be seen in a window that is: there is nothing to do until `refresh`.
  // False for a view outside any dock or of a window that is not shown. The view must show some
  // part of itself between its opaque children: one that they hide is taken to be behind.
  [[nodiscard]] bool put_off();

 private:
  void shown();

  QWidget& view_;
  std::function<void()> refresh_;
  QPointer<QDockWidget> dock_;  // followed; null: none yet
  bool stale_ = false;
  bool showing_ = false;
};

}  // namespace stowage::gui
