#include "gui/model/command_run.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>

#include "gui/model/command_text.h"

namespace stowage::gui {
namespace {

constexpr int kPatienceMs = 5000;

}  // namespace

QString find_stowage_command() {
  const QString name = QStringLiteral("stowage");
  const QString beside =
      QStandardPaths::findExecutable(name, {QCoreApplication::applicationDirPath()});
  return beside.isEmpty() ? QStandardPaths::findExecutable(name) : beside;
}

CommandRun::CommandRun(QObject* parent) : QObject(parent) {
  impatience_.setSingleShot(true);
  connect(&impatience_, &QTimer::timeout, &process_, &QProcess::kill);
  connect(&process_, &QProcess::readyReadStandardError, this,
          [this] { Q_EMIT logged(QString::fromUtf8(process_.readAllStandardError())); });
  connect(&process_, &QProcess::readyReadStandardOutput, this,
          [this] { output_ += process_.readAllStandardOutput(); });
  connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
    const bool died = status == QProcess::CrashExit;
    end(died ? -1 : code, died && !cancelled_ ? tr("the command died") : QString());
  });
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) end(-1, process_.errorString());
  });
}

CommandRun::~CommandRun() {
  process_.disconnect(this);
  if (!running()) return;
  process_.terminate();
  if (!process_.waitForFinished(kPatienceMs)) {
    process_.kill();
    process_.waitForFinished();
  }
}

void CommandRun::start(const QString& program, const QStringList& arguments) {
  if (running()) return;
  output_.clear();
  cancelled_ = false;
  process_.setStandardInputFile(QProcess::nullDevice());
  process_.start(program, arguments);
}

void CommandRun::cancel() {
  if (!running()) return;
  cancelled_ = true;
  process_.terminate();
  impatience_.start(kPatienceMs);
}

void CommandRun::end(int code, const QString& problem) {
  impatience_.stop();
  const QByteArray rest = process_.readAllStandardError();
  if (!rest.isEmpty()) Q_EMIT logged(QString::fromUtf8(rest));
  output_ += process_.readAllStandardOutput();
  Q_EMIT ended(End{code, cancelled_, problem});
}

QString command_line_text(const QString& program, const QStringList& arguments) {
  QStringList words{
      QString::fromStdString(shell_word(QFileInfo(program).fileName().toStdString()))};
  for (const QString& argument : arguments) {
    words.append(QString::fromStdString(shell_word(argument.toStdString())));
  }
  return words.join(QLatin1Char(' '));
}

}  // namespace stowage::gui
