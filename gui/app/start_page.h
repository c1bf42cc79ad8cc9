// What the window offers while nothing is open: a file, the last ones, and all samples.
#pragma once

#include <QBoxLayout>
#include <QString>
#include <QToolButton>
#include <QWidget>

namespace stowage::gui {

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);

  // The last files anew: they change while the program runs.
  void refresh();

 Q_SIGNALS:
  void open_requested();  // which file is to be asked for
  void file_chosen(const QString& path);

 private:
  QToolButton* add(QBoxLayout& list, const QString& text, const QString& tip);
  void add_file(QBoxLayout& list, const QString& title, const QString& path);

  QVBoxLayout* recent_;
};

}  // namespace stowage::gui
