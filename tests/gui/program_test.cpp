// The real program without a display: exit codes, one clear line, pictures.
#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QImage>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>

#include "gui/app/options.h"

namespace stowage::gui {
namespace {

const QString kSample =
    QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/gpt2-l6-fp32-cpu.trace.json.gz");

struct Ran {
  int code = -1;
  QString out;
  QString err;
};

// `display`: what DISPLAY is; empty: none.
Ran run(const QStringList& arguments, const QString& display = {}) {
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
    environment.remove(name);
  }
  environment.insert("XDG_RUNTIME_DIR", QDir::tempPath());
  if (!display.isEmpty()) environment.insert("DISPLAY", display);
  process.setProcessEnvironment(environment);
  process.start(QStringLiteral(STOWAGE_BIN_DIR "/stowage-gui"), arguments);
  if (!process.waitForFinished(120'000)) return {};
  return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

TEST(Program, HelpAndVersionNeedNoDisplay) {
  const Ran help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.out.contains("--screenshot"));
  EXPECT_TRUE(help.out.contains("Example:"));
  const Ran version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.startsWith("stowage-gui "));
}

TEST(Program, ABadOptionEndsWithTwoAndTheNearestOne) {
  const Ran ran = run({"--screnshot", "a.png"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.err.contains("--screenshot")) << ran.err.toStdString();
  EXPECT_EQ(run({"--size", "10x"}).code, 2);
  EXPECT_EQ(run({"--view", "kitchen", "--screenshot", "a.png", kSample}).code, 2);
  EXPECT_EQ(run({"--screenshot"}).code, 2);
  EXPECT_EQ(run({"--screenshot", "a.png"}).code, 2);
  EXPECT_EQ(run({"--view", "memory", kSample}).code, 2);
}

TEST(Program, ABadFileEndsWithThreeAndOneLine) {
  const QTemporaryDir folder;
  const QString picture = folder.filePath("a.png");
  const Ran ran = run({"--screenshot", picture, folder.filePath("missing.json")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(ran.err.contains("missing.json"));
  EXPECT_EQ(ran.err.count("error:"), 1);
  EXPECT_FALSE(QFile::exists(picture));
}

TEST(Program, APictureThatIsNoPngIsRefusedWithAWayToGetOne) {
  const QTemporaryDir folder;
  const QString picture = folder.filePath("a.svg");
  const Ran ran = run({"--screenshot", picture, kSample});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.err.contains(".png")) << ran.err.toStdString();
  EXPECT_TRUE(ran.err.contains("stowage export")) << ran.err.toStdString();
  EXPECT_FALSE(QFile::exists(picture));
}

TEST(Program, APictureThatCannotBeWrittenSaysWhatToDo) {
  const QTemporaryDir folder;
  const Ran ran = run({"--screenshot", folder.filePath("no/folder/a.png"), kSample});
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(ran.err.contains("a folder that is there")) << ran.err.toStdString();
}

TEST(Program, WithoutADisplayAWindowIsRefused) {
  const Ran ran = run({kSample});
  EXPECT_EQ(ran.code, 4);
  EXPECT_TRUE(ran.err.contains("--screenshot"));
}

TEST(Program, ADisplayThatDoesNotRunIsNoCrash) {
  const QTemporaryDir folder;
  const QString dead = QStringLiteral(":4097");
  const Ran ran = run({kSample}, dead);
  EXPECT_EQ(ran.code, 4) << ran.err.toStdString();
  EXPECT_TRUE(ran.err.contains("the display cannot be used")) << ran.err.toStdString();
  // A picture needs none.
  const QString picture = folder.filePath("a.png");
  EXPECT_EQ(run({"--screenshot", picture, kSample}, dead).code, 0);
  EXPECT_FALSE(QImage(picture).isNull());
}

TEST(Program, APictureOfSeveralFilesSaysWhatItDoesNotShow) {
  const QTemporaryDir folder;
  const QString picture = folder.filePath("a.png");
  const QString other =
      QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-cpu.trace.json.gz");
  const Ran two = run({"--screenshot", picture, kSample, other});
  EXPECT_EQ(two.code, 0);
  EXPECT_TRUE(two.err.contains("note: One trace is shown at a time")) << two.err.toStdString();
  const Ran bad = run(
      {"--screenshot", picture, folder.filePath("one.json"), kSample, folder.filePath("two.json")});
  EXPECT_EQ(bad.code, 3);
  EXPECT_TRUE(bad.err.contains("one.json") && bad.err.contains("two.json"))
      << bad.err.toStdString();
}

TEST(Program, AScreenshotHasTheSizeThatWasAskedFor) {
  const QTemporaryDir folder;
  for (const QString view : {"", "timeline", "memory"}) {
    const QString picture = folder.filePath(view + "picture.png");
    QStringList arguments{"--screenshot", picture, "--size", "1000x700"};
    if (!view.isEmpty()) arguments << "--view" << view;
    const Ran ran = run(arguments << kSample);
    EXPECT_EQ(ran.code, 0) << ran.err.toStdString();
    const QImage image(picture);
    EXPECT_EQ(image.size(), QSize(1000, 700)) << view.toStdString();
  }
}

TEST(Program, EveryViewCanBeAskedForAndIsNotEmpty) {
  const QTemporaryDir folder;
  const QString sample =
      QStringLiteral(STOWAGE_SOURCE_DIR "/traces/samples/mlp-l6-fp32-cpu.trace.json.gz");
  EXPECT_EQ(view_ids(), (QStringList{"timeline", "memory", "plan", "details", "alive", "blocks",
                                     "range", "what_if", "pareto", "compare"}));
  for (const QString& view : view_ids()) {
    const QString picture = folder.filePath(view + ".png");
    const Ran ran = run({"--screenshot", picture, "--size", "800x600", "--view", view, sample});
    ASSERT_EQ(ran.code, 0) << view.toStdString() << ran.err.toStdString();
    // More than one line of text in the middle of nothing.
    const QImage image = QImage(picture).convertToFormat(QImage::Format_RGB32);
    ASSERT_EQ(image.size(), QSize(800, 600));
    int rows = 0;
    for (int y = 0; y < image.height(); y += 2) {
      bool drawn = false;
      for (int x = 1; x < image.width() && !drawn; ++x) {
        drawn = image.pixel(x, y) != image.pixel(x - 1, y);
      }
      rows += drawn ? 1 : 0;
    }
    EXPECT_GT(rows, 60) << view.toStdString();
  }
}

TEST(Options, AreReadWithOrWithoutAnEqualsSign) {
  const auto options = parse_options(
      {"--screenshot=a.png", "--size", "800x600", "--view=memory", "t.json", "--", "-x"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->screenshot, "a.png");
  EXPECT_EQ(options->size, QSize(800, 600));
  EXPECT_EQ(options->view, "memory");
  EXPECT_EQ(options->files, (QStringList{"t.json", "-x"}));
}

}  // namespace
}  // namespace stowage::gui
