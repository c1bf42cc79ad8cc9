#include "cli/torch_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/signals.h"

namespace stowage::cli {
namespace {

namespace fs = std::filesystem;

bool is_command(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<char*> argv_of(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

}  // namespace

std::optional<std::string> find_torch_command() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path folder = self.parent_path();
    for (const fs::path& candidate :
         {folder / kTorchCommand, folder.parent_path() / "libexec" / "stowage" / kTorchCommand}) {
      if (is_command(candidate)) return candidate.string();
    }
  }
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    if (!folder.empty() && is_command(fs::path(folder) / kTorchCommand)) {
      return (fs::path(folder) / kTorchCommand).string();
    }
  }
  return std::nullopt;
}

Error exec_torch_command(const std::vector<std::string>& args, std::ostream& out,
                         std::ostream& err) {
  const auto path = find_torch_command();
  if (!path) {
    const std::string verb = args.empty() ? "" : "'stowage " + args.front() + "' needs ";
    return Error{
        ErrorCode::environment,
        verb + kTorchCommand + ", which was not found beside stowage, in libexec or on PATH", "",
        "", "run scripts/demo.sh, or configure with -DSTOWAGE_WITH_TORCH=ON and build"};
  }
  std::vector<std::string> words = {*path};
  words.insert(words.end(), args.begin(), args.end());
  out.flush();
  err.flush();
  restore_pipe_signal();
  ::execv(path->c_str(), argv_of(words).data());
  return Error{ErrorCode::environment, std::string("cannot be started: ") + std::strerror(errno),
               *path, "", ""};
}

std::string torch_command_output(const std::vector<std::string>& args, int timeout_ms) {
  const auto path = find_torch_command();
  int ends[2];
  if (!path || ::pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<std::string> words = {*path};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv = argv_of(words);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    restore_pipe_signal();
    ::execv(path->c_str(), argv.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  bool complete = false;
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (child > 0 && text.size() <= (1U << 20U)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{ends[0], POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) break;
    char buffer[4096];
    const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
    if (n <= 0) {
      complete = n == 0;
      break;
    }
    text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  if (child <= 0) return {};
  if (!complete) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool ran = WIFEXITED(status) && WEXITSTATUS(status) != 127;
  return complete && ran ? text : std::string();
}

}  // namespace stowage::cli
