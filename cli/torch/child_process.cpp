#include "cli/torch/child_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "cli/run_main.h"
#include "cli/signals.h"
#include "cli/torch/end_process.h"
#include "cli/torch/torch_verbs.h"
#include "executor/plugin_library.h"

namespace stowage::cli {

namespace {

Error system_error(const std::string& what) {
  return {ErrorCode::environment, what + ": " + std::strerror(errno), "", "", ""};
}

int number_of_threads() {
  std::error_code failed;
  const std::filesystem::directory_iterator threads("/proc/self/task", failed);
  return failed ? -1 : static_cast<int>(std::distance(begin(threads), end(threads)));
}

bool has_driver_of_gpu() {
  return ::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
}

// Whether a copy of this process does as well as a new one, which loads LibTorch again for half a
// second: no other thread is there, nobody's plugin was loaded, and this machine has no driver of a
// GPU, which does not outlive a fork once it was asked. Sanitizers watch processes from their
// start.
bool can_be_copied() {
  return !kIsSanitized && !executor::is_plugin_loaded() && number_of_threads() == 1 &&
         !has_driver_of_gpu();
}

// Only async-signal-safe calls: behind this comes exec.
void take_place(pid_t parent, int stdout_descriptor, int stderr_descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(ErrorCode::interrupted));
  if (stdout_descriptor < 0) stdout_descriptor = ::open("/dev/null", O_WRONLY);
  if (stdout_descriptor >= 0) ::dup2(stdout_descriptor, STDOUT_FILENO);
  ::dup2(stderr_descriptor, STDERR_FILENO);
}

[[noreturn]] void become(char* const* argv) {
  ::execv("/proc/self/exe", argv);
  ::_exit(static_cast<int>(ErrorCode::environment));
}

// What main() does, in the copy of a process.
[[noreturn]] void run_here(int argc, char** argv) {
  set_last_words(false);
  end_process(run_main(argc, argv, run_stowage_torch));
}

constexpr std::size_t kLongestWords = 300;  // of what a child printed last

// The error line that a child printed, as the error that it was.
Error child_error(const ScratchFile& messages, int exit_code) {
  Error error{static_cast<ErrorCode>(exit_code),
              "a run of the model ended with exit code " + std::to_string(exit_code), "", "", ""};
  const Result<std::string> text = messages.content();
  if (!text) return error;
  const std::string mark = "stowage: error: ";
  const std::size_t begin = text->rfind(mark);
  if (begin == std::string::npos) {
    // It died of something else (a failed assertion), whose last words these are.
    const std::size_t end = text->find_last_not_of(" \r\n");
    if (end == std::string::npos) return error;
    const std::size_t line = text->rfind('\n', end);
    const std::size_t from = line == std::string::npos ? 0 : line + 1;
    error.message += ": " + text->substr(from, std::min(end + 1 - from, kLongestWords));
    return error;
  }
  const std::size_t from = begin + mark.size();
  error.message = text->substr(from, text->find('\n', from) - from);
  return error;
}

}  // namespace

Result<ScratchFile> ScratchFile::create() {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) folder = "/tmp";
  std::string path = (folder / "stowage-XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  if (descriptor < 0) {
    Error error = system_error("no temporary file in " + folder.string());
    error.hint = "set TMPDIR to a folder that can be written";
    return error;
  }
  ::unlink(path.c_str());
  return ScratchFile(descriptor);
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Result<std::string> ScratchFile::content() const {
  std::string text;
  char chunk[1 << 16];
  off_t at = 0;
  for (;;) {
    const ssize_t got = ::pread(descriptor_, chunk, sizeof chunk, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("reading a child's results");
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
    at += got;
  }
}

Status write_descriptor(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("writing results for the parent process");
    done += static_cast<std::size_t>(written);
  }
  return Unit{};
}

Status run_child(const std::vector<std::string>& arguments, int stdout_descriptor) {
  std::vector<std::string> words = {"stowage-torch"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  Result<ScratchFile> messages = ScratchFile::create();
  if (!messages) return messages.error();
  const bool is_copy = can_be_copied();
  std::fflush(nullptr);  // or the copy writes it once more
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("cannot start a process");
  if (child == 0) {
    take_place(parent, stdout_descriptor, messages->descriptor());
    if (is_copy) run_here(static_cast<int>(words.size()), argv.data());
    become(argv.data());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("waiting for a child process");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Unit{};
  if (WIFEXITED(status)) return child_error(*messages, WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGKILL) {
    return Error{ErrorCode::environment, "a run of the model was killed by the system", "", "",
                 "it probably ran out of memory: use a smaller model or batch"};
  }
  return Error{ErrorCode::internal,
               "a run of the model ended with signal " + std::to_string(signal), "", "", ""};
}

}  // namespace stowage::cli
