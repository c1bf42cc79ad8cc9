// The recordings that come with the program.
#pragma once

#include <QList>
#include <QString>

namespace stowage::gui {

struct Sample {
  QString title;  // "Llama-3-8B, 9 layers, fp32, H200"
  QString path;
};

// All that are there: of an installation, beside the program; of a build, in the source tree. The
// one to begin with comes first.
[[nodiscard]] QList<Sample> samples();

}  // namespace stowage::gui
