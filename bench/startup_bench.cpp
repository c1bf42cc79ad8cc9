// How long `stowage --version` takes from spawn to exit: planning must start in milliseconds, and a
// library too many shows here first.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace {

void stowage_startup(benchmark::State& state) {
  std::string program = std::string(STOWAGE_BIN_DIR) + "/stowage";
  std::string option = "--version";
  char* const arguments[] = {program.data(), option.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  for (auto _ : state) {
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
      state.SkipWithError("stowage --version failed");
      break;
    }
  }
  posix_spawn_file_actions_destroy(&actions);
}
BENCHMARK(stowage_startup)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
