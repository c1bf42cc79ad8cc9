#include "gui/model/command_text.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "simulator/machine/calibration_settings.h"
#include "tests/support/small_trace.h"

namespace stowage::gui {
namespace {

using simulator::apply_setting;

// What `stowage simulate` makes of the command's --set.
Calibration set_by(const std::string& command, Calibration calibration) {
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    if (word != "--set") continue;
    words >> word;
    EXPECT_TRUE(apply_setting(calibration, word).ok()) << word;
  }
  return calibration;
}

TEST(CommandText, SetsTheMachineThatIsShown) {
  const auto recorded =
      std::make_shared<const TraceData>(testing::small_trace(), "t.json", "sha256:1");
  Calibration measured = recorded->trace.calibration;
  measured.h2d = measured.d2h = {{1 << 10, 1 << 20}, {1'000'000'000, 20'000'000'000}, {1, 1}, 1000};
  for (const simulator::CalibrationSetting& setting : simulator::calibration_settings()) {
    Calibration assumed = measured;
    const double value = setting.unit.empty() ? 0.25 : 3;
    ASSERT_TRUE(apply_setting(assumed, setting.name, value).ok());
    const auto shown = simulate(on_machine(*recorded, assumed, MachineKind::assumed),
                                std::make_shared<PlanState>());
    ASSERT_TRUE(shown.ok()) << shown.error().text();
    const std::string command = command_text(**shown, "p.json", measured);
    const Calibration made = set_by(command, measured);
    for (const simulator::CalibrationSetting& each : simulator::calibration_settings()) {
      const double wanted = simulator::setting_value(assumed, each.name);
      EXPECT_NEAR(simulator::setting_value(made, each.name), wanted, 1e-5 * wanted)
          << command << ": " << each.name;
    }
    // Small copies too: 1 KiB at 1 GB/s takes 1,024 ns, 3,024 ns with 2,000 ns more of latency.
    EXPECT_NEAR(static_cast<double>(made.h2d.bytes_per_second[0]),
                static_cast<double>(assumed.h2d.bytes_per_second[0]), 1e4)
        << command;
  }
}

}  // namespace
}  // namespace stowage::gui
