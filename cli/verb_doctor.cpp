#include "cli/doctor_json.h"
#include "cli/machine.h"
#include "cli/torch_command.h"
#include "cli/verbs.h"
#include "report/answers/text_table.h"
#include "traces/build_info.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

constexpr const char* kBuildTorch =
    "run scripts/demo.sh, or configure with -DSTOWAGE_WITH_TORCH=ON and build";
constexpr const char* kBuildCuda = "configure with -DSTOWAGE_WITH_TORCH=ON -DSTOWAGE_WITH_CUDA=ON";

class Report {
 public:
  explicit Report(const Paint& paint) : paint_(paint) {
    for (int i = 0; i < 3; ++i) table_.column("");
  }
  void yes(const std::string& what, const std::string& how) {
    table_.row({paint_.green("yes"), what, how});
  }
  void no(const std::string& what, const std::string& how) {
    table_.row({paint_.yellow("no"), what, how});
  }
  void line(const std::string& what, const std::string& value) { table_.row({"", what, value}); }
  [[nodiscard]] std::string text() const { return table_.text(2); }

 private:
  Paint paint_;
  report::TextTable table_;
};

std::string machine_text(const Machine& machine, const Paint& paint) {
  Report report(paint);
  report.line("CPU", (machine.cpu.empty() ? "not known" : machine.cpu) + ", " +
                         std::to_string(machine.cpus) + " usable");
  report.line("memory", machine.memory == 0
                            ? "not known"
                            : format_bytes(machine.memory) + ", " +
                                  format_bytes(machine.memory_available) + " available");
  if (machine.gpus.empty()) {
    report.line("GPU", machine.nvidia_driver ? "NVIDIA driver, but no GPU visible"
                                             : "none visible (no NVIDIA driver)");
  }
  for (const std::string& gpu : machine.gpus) {
    report.line("GPU", gpu + ", driver " + machine.driver_version);
  }
  return report.text();
}

std::string features_text(const Doctor& doctor, const Paint& paint) {
  Report report(paint);
  report.yes("inspect, simulate, plan", "need nothing else");
  if (doctor.torch_command.empty()) {
    report.no("profile, execute, verify on the CPU",
              std::string("no stowage-torch: ") + kBuildTorch);
  } else if (!doctor.torch.answered) {
    report.no("profile, execute, verify on the CPU",
              doctor.torch_command + " does not run: start it by hand to see why");
  } else {
    report.yes("profile, execute, verify on the CPU",
               doctor.torch_command +
                   (doctor.torch.version.empty() ? "" : ", LibTorch " + doctor.torch.version));
  }
  const bool cuda_built = doctor.torch.cuda_built.value_or(false);
  if (doctor.machine.gpus.empty()) {
    report.no("the same on a GPU", cuda_built ? "built, but this machine shows no NVIDIA GPU"
                                              : "this machine shows no NVIDIA GPU");
  } else if (!cuda_built) {
    report.no("the same on a GPU", std::string("not built: ") + kBuildCuda);
  } else if (doctor.torch.cupti == false) {
    report.no("the same on a GPU",
              "kernels cannot be timed: CUPTI is missing or in use by another "
              "profiler");
  } else {
    report.yes("the same on a GPU", "built");
  }
  return report.text();
}

}  // namespace

int verb_doctor(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("doctor",
                   "Says what this build and this machine can do, and how to get the rest");
  line.example("stowage doctor");
  line.example("stowage doctor --json");
  return run_verb(line, args, out, err, [](Console& console) -> Result<int> {
    Doctor doctor;
    doctor.machine = look_at_machine();
    doctor.torch_command = find_torch_command().value_or("");
    if (!doctor.torch_command.empty()) {
      doctor.torch = read_torch_facts(torch_command_output({"doctor", "--json"}));
    }
    if (console.json) {
      console.out << doctor_json(doctor);
      return 0;
    }
    std::string built = std::string(kCompiler) + ", " + std::string(kBuildType);
    if (!kSanitizers.empty()) built += ", sanitizers " + std::string(kSanitizers);
    const Paint& paint = console.paint;
    console.say(paint.bold("stowage " + std::string(kVersion)) + ", " + built + "\n\n" +
                paint.bold("This machine") + "\n" + machine_text(doctor.machine, paint) + "\n" +
                paint.bold("What works here") + "\n" + features_text(doctor, paint));
    return 0;
  });
}

}  // namespace stowage::cli
