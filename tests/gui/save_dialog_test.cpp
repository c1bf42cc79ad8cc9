// The names of exports: which file is asked about is which file is written.
#include <QFile>
#include <QImage>
#include <QMessageBox>
#include <QTemporaryDir>

#include "tests/gui/hands.h"
#include "traces/file_io.h"

namespace stowage::gui {
namespace {

class SaveDialog : public testing::Hands {
 protected:
  QString file(const char* name) const { return folder_.filePath(name); }
  // Types a name into the next dialog and says No to its question; one that asks nothing is given
  // up. Two timers: none fires inside its own slot, and the question comes inside the click on
  // Save.
  void refuse_to_overwrite(const QString& name) {
    auto* timers = new QObject(&window_);
    each<QMessageBox>(timers, [this](QMessageBox& question) {
      asked_ = question.text();
      QTest::mouseClick(question.button(QMessageBox::No), Qt::LeftButton);
    });
    each<QFileDialog>(timers, [this, timers, name, tries = 0](QFileDialog& dialog) mutable {
      if (!asked_.isEmpty() || ++tries == 50) {
        timers->deleteLater();
        return dialog.reject();
      }
      auto* field = dialog.findChild<QLineEdit*>(QStringLiteral("fileNameEdit"));
      field->setCompleter(nullptr);
      field->setFocus();
      QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
      QTest::keyClicks(field, name);
      QTest::mouseClick(dialog.findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save),
                        Qt::LeftButton);
    });
  }
  // Again and again while such a dialog is the one that is open.
  template <class Dialog, class Then>
  void each(QObject* owner, Then then) {
    auto* timer = new QTimer(owner);
    QObject::connect(timer, &QTimer::timeout, timer, [then]() mutable {
      auto* dialog = qobject_cast<Dialog*>(QApplication::activeModalWidget());
      if (dialog != nullptr && dialog->isVisible()) then(*dialog);
    });
    timer->start(20);
  }

  const QTemporaryDir folder_;
  QString asked_;
};

TEST_F(SaveDialog, ANameWithoutASuffixIsAskedAboutAsTheFileThatWouldBeWritten) {
  open(testing::kSmallCpu);
  const std::pair<const char*, const char*> exports[] = {
      {"export_png", "a.png"}, {"export_svg", "a.svg"},     {"export_csv_memory", "a.csv"},
      {"save_as", "a.json"},   {"export_chrome", "b.json"},
  };
  for (const auto& [action, name] : exports) {
    asked_.clear();
    ASSERT_TRUE(write_file(file(name).toStdString(), "precious"));
    refuse_to_overwrite(file(name).section('.', 0, -2));
    window_.action(action)->trigger();
    window_.settle();
    EXPECT_TRUE(asked_.contains(name)) << action << ": " << asked_.toStdString();
    EXPECT_EQ(*read_file(file(name).toStdString()), "precious") << action;
  }
}

TEST_F(SaveDialog, APictureGetsTheNameThatWasTypedOrItsSuffix) {
  answer_file_dialog(file("view"));
  window_.action("export_png")->trigger();
  EXPECT_EQ(QImage(file("view.png")).size(), window_.size());
  answer_file_dialog(file("view.picture"));
  window_.action("export_png")->trigger();
  EXPECT_EQ(QImage(file("view.picture"), "PNG").size(), window_.size());
}

}  // namespace
}  // namespace stowage::gui
