#include "cli/python_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cli/signals.h"

namespace stowage::cli {
namespace {

constexpr const char* kPython = "python3";
constexpr int kHasNoPackage = 3;

std::vector<char*> argv_of_python(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

Error cannot_start(int error) {
  return Error{ErrorCode::environment,
               std::string("python3 cannot be started: ") + std::strerror(error), "", "",
               "a python3 on PATH that has torch and the package stowage"};
}

// Whether python3 finds the package, without importing it.
Status has_package() {
  std::vector<std::string> words = {
      kPython, "-c",
      "import importlib.util, sys; found = importlib.util.find_spec('stowage'); "
      "sys.exit(0 if found and found.origin else " +
          std::to_string(kHasNoPackage) + ")"};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, kPython, &actions, nullptr, argv_of_python(words).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return cannot_start(error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Unit{};
  return Error{ErrorCode::environment,
               "a step of Python code is recorded by the Python package stowage, which the python3 "
               "on PATH does not have",
               "", "", "pip install --no-build-isolation ./python, beside torch"};
}

}  // namespace

bool is_python_profile(const Args& args) {
  return args.size() > 1 && args.front() == "profile" &&
         std::any_of(args.begin() + 1, args.end(),
                     [](const std::string& word) { return word.starts_with(kPythonModel); });
}

Error exec_python_profile(const Args& args, std::ostream& out, std::ostream& err) {
  if (const Status status = has_package(); !status) return status.error();
  std::vector<std::string> words = {kPython, "-m", "stowage"};
  bool is_named = false;
  for (const std::string& word : args) {
    const bool names = !is_named && word.starts_with(kPythonModel);
    words.push_back(names ? word.substr(kPythonModel.size()) : word);
    is_named = is_named || names;
  }
  out.flush();
  err.flush();
  restore_pipe_signal();
  ::execvp(kPython, argv_of_python(words).data());
  return cannot_start(errno);
}

}  // namespace stowage::cli
