#include "gui/app/samples.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>

namespace stowage::gui {
namespace {

struct Known {
  const char* title;
  const char* file;
};
constexpr Known kKnown[] = {
    {"Llama-3-8B, 9 layers, fp32, H200", "llama3-8b-l9-fp32-math-h200"},
    {"Llama-3-8B, 9 layers, fp32 with efficient attention, H200",
     "llama3-8b-l9-fp32-efficient-h200"},
    {"Llama-3-8B, 9 layers, TF32, H200", "llama3-8b-l9-tf32-math-h200"},
    {"Llama-3-8B, 9 layers, TF32 with efficient attention, H200",
     "llama3-8b-l9-tf32-efficient-h200"},
    {"Llama-3-8B, 9 layers, bf16, H200", "llama3-8b-l9-bf16-h200"},
    {"Llama-3-8B, 9 layers, bf16 with efficient attention, H200",
     "llama3-8b-l9-bf16-efficient-h200"},
    {"Llama-3-8B, 4 layers, AdamW, bf16, H100", "llama3-8b-l4-ce-adamw-bf16-h100"},
    {"GPT-2, fp32, H200", "gpt2-fp32-h200"},
    {"GPT-2, bf16, H200", "gpt2-bf16-h200"},
    {"GPT-2, 2 layers, AdamW, bf16, H100", "gpt2-l2-adamw-bf16-h100"},
    {"ViT, fp32, H200", "vit-fp32-h200"},
    {"ViT, attribution, fp32, H200", "vit-attribution-fp32-h200"},
    {"ResNet-50, fp32, H200", "resnet50-fp32-h200"},
    {"Perceptron, 6 layers, fp32, H200", "mlp-l6-fp32-h200"},
    {"GPT-2, 6 layers, fp32, CPU", "gpt2-l6-fp32-cpu"},
    {"Perceptron, 6 layers, fp32, CPU", "mlp-l6-fp32-cpu"},
};
const QString kEnding = QStringLiteral(".trace.json.gz");

QString folder() {
  // Installed: bin/stowage-gui and share/stowage/samples have one parent.
  const QString program = QCoreApplication::applicationDirPath();
  const QString installed =
      QDir::cleanPath(program + QStringLiteral("/../" STOWAGE_SAMPLES_INSTALLED));
  if (QFileInfo(installed).isDir()) return installed;
  const bool built =
      QDir::cleanPath(program).startsWith(QDir::cleanPath(QStringLiteral(STOWAGE_BUILD_DIR)));
  return built ? QStringLiteral(STOWAGE_SAMPLES_IN_SOURCE) : QString();
}

}  // namespace

QList<Sample> samples() {
  QList<Sample> found;
  const QString at = folder();
  if (at.isEmpty()) return found;
  QStringList files = QDir(at).entryList({QLatin1Char('*') + kEnding}, QDir::Files, QDir::Name);
  for (const Known& known : kKnown) {
    const QString file = QLatin1String(known.file) + kEnding;
    if (!files.removeOne(file)) continue;
    found.append({QCoreApplication::translate("samples", known.title), QDir(at).filePath(file)});
  }
  // One that nobody gave a title has its file's name.
  for (const QString& file : files) {
    found.append({file.chopped(kEnding.size()), QDir(at).filePath(file)});
  }
  return found;
}

}  // namespace stowage::gui
