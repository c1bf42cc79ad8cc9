// A command of ours as a child process: its log as it comes, its results at the end, and a way to
// end it. The child never outlives this object.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

namespace stowage::gui {

// The `stowage` command: beside this program, else on PATH; empty = not found.
[[nodiscard]] QString find_stowage_command();

class CommandRun : public QObject {
  Q_OBJECT
 public:
  explicit CommandRun(QObject* parent = nullptr);
  ~CommandRun() override;

  // Nothing while one runs.
  void start(const QString& program, const QStringList& arguments);
  // Asks it to end (SIGTERM: unfinished files are removed) and, when it does not, kills it.
  void cancel();
  [[nodiscard]] bool running() const { return process_.state() != QProcess::NotRunning; }
  // What it has written to stdout.
  [[nodiscard]] const QByteArray& output() const { return output_; }

  // `code`: that of the command's contract (docs/cli.md); -1 = it did not start, or died.
  struct End {
    int code = -1;
    bool cancelled = false;
    QString problem;  // why, of -1
  };

 Q_SIGNALS:
  void logged(const QString& text);  // a piece of stderr
  void ended(const stowage::gui::CommandRun::End& end);

 private:
  void end(int code, const QString& problem);

  QProcess process_;
  QTimer impatience_;
  QByteArray output_;
  bool cancelled_ = false;
};

// "stowage profile mlp -o 'a b.json'", arguments quoted where a POSIX shell needs it.
[[nodiscard]] QString command_line_text(const QString& program, const QStringList& arguments);

}  // namespace stowage::gui
