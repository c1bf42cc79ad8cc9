#include "tests/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace stowage::cli_tests {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::seconds(300);

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return {ends[0], ends[1]};
}

// Both ends of a terminal.
Pipe make_terminal(int columns) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0 || ::grantpt(ours) != 0 || ::unlockpt(ours) != 0) throw std::runtime_error("pty");
  const int theirs = ::open(::ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC);
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  if (theirs < 0 || ::ioctl(theirs, TIOCSWINSZ, &size) != 0) throw std::runtime_error("pty");
  return {ours, theirs};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

struct Started {
  pid_t pid = -1;
  int in = -1;
  int out = -1;
  int err = -1;
};

Started start(const Command& command) {
  std::vector<std::string> words = {command.program};
  words.insert(words.end(), command.args.begin(), command.args.end());
  std::vector<std::string> variables = command.environment;
  for (char** at = environ; *at != nullptr; ++at) variables.emplace_back(*at);
  std::vector<char*> argv = pointers(words);
  std::vector<char*> envp = pointers(variables);
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  const Pipe err =
      command.terminal_columns > 0 ? make_terminal(command.terminal_columns) : make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(in.read, 0);
    ::dup2(out.write, 1);
    ::dup2(err.write, 2);
    if (!command.stdout_file.empty()) ::dup2(::open(command.stdout_file.c_str(), O_WRONLY), 1);
    if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(126);
    for (const int fd : command.closed) ::close(fd);
    ::execve(command.program.c_str(), argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(in.read);
  ::close(out.write);
  ::close(err.write);
  return {pid, in.write, out.read, err.read};
}

void append_from(int& fd, std::string& text) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n > 0) {
    text.append(buffer, static_cast<std::size_t>(n));
  } else {
    ::close(fd);
    fd = -1;
  }
}

// Feeds, drains and waits, all at once, so that neither side blocks for ever.
Outcome attend(Started child, const std::string& input) {
  ::signal(SIGPIPE, SIG_IGN);
  Outcome outcome;
  std::size_t written = 0;
  const auto deadline = Clock::now() + kLimit;
  if (child.in >= 0) ::fcntl(child.in, F_SETFL, O_NONBLOCK);
  while (child.out >= 0 || child.err >= 0) {
    if (child.in >= 0 && written == input.size()) {
      ::close(child.in);
      child.in = -1;
    }
    pollfd waits[3] = {{child.in, POLLOUT, 0}, {child.out, POLLIN, 0}, {child.err, POLLIN, 0}};
    const int ready = ::poll(waits, 3, 1000);
    if (Clock::now() > deadline) {
      ::kill(child.pid, SIGKILL);
      outcome.err += "(killed by the test: too long)";
      break;
    }
    if (ready <= 0) continue;
    if (child.in >= 0 && waits[0].revents != 0) {
      const ssize_t n = ::write(child.in, input.data() + written, input.size() - written);
      if (n > 0)
        written += static_cast<std::size_t>(n);
      else if (n < 0 && errno != EAGAIN)
        written = input.size();
    }
    if (child.out >= 0 && waits[1].revents != 0) append_from(child.out, outcome.out);
    if (child.err >= 0 && waits[2].revents != 0) append_from(child.err, outcome.err);
  }
  for (const int fd : {child.in, child.out, child.err}) {
    if (fd >= 0) ::close(fd);
  }
  int status = 0;
  rusage used{};
  ::wait4(child.pid, &status, 0, &used);
  outcome.peak_kib = used.ru_maxrss;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// Fields after the command name: [0] the state, [11] and [12] user and system time in ticks.
std::vector<std::string> stat_fields(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  std::vector<std::string> fields;
  if (name_end == std::string::npos) return fields;
  std::istringstream rest(line.substr(name_end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

template <class Condition>
void wait_for(const Condition& condition) {
  const auto deadline = Clock::now() + kLimit;
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("the child did not get there");
    std::this_thread::yield();
  }
}

}  // namespace

std::string built_stowage() {
  return STOWAGE_BIN_DIR "/stowage";
}

Outcome run(const Command& command) {
  return attend(start(command), command.input);
}

Outcome stowage(std::vector<std::string> args, const std::string& input) {
  Command command;
  command.args = std::move(args);
  command.input = input;
  return run(command);
}

Child::Child(const Command& command) {
  const Started child = start(command);
  pid_ = child.pid;
  in_ = child.in;
  out_ = child.out;
  err_ = child.err;
}

Child::~Child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Child::wait_until_blocked() const {
  // "0 ..." in /proc/PID/syscall: read() on file descriptor 0 or an opened one, while asleep.
  wait_for([this] {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/wchan");
    std::string where;
    std::getline(file, where);
    const auto fields = stat_fields(pid_);
    const bool asleep = !fields.empty() && fields[0] == "S";
    return asleep && where.find("pipe") != std::string::npos;
  });
}

void Child::wait_until_writing() const {
  wait_for([this] {
    int waiting = 0;
    ::ioctl(out_, FIONREAD, &waiting);
    const auto fields = stat_fields(pid_);
    return waiting > 0 && !fields.empty() && fields[0] == "S";
  });
}

pid_t Child::wait_until_has_child() const {
  const std::string id = std::to_string(pid_);
  pid_t child = -1;
  wait_for([&] {
    std::ifstream file("/proc/" + id + "/task/" + id + "/children");
    return static_cast<bool>(file >> child);
  });
  return child;
}

void Child::wait_until_running_for(int milliseconds) const {
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  wait_for([&] {
    const auto fields = stat_fields(pid_);
    if (fields.size() < 13 || fields[0] == "Z") return true;
    const long ticks = std::stol(fields[11]) + std::stol(fields[12]);
    return ticks * 1000 / ticks_per_second >= milliseconds;
  });
}

void Child::send(int signal) const {
  ::kill(pid_, signal);
}

Outcome Child::finish() {
  const Started child{pid_, -1, out_, err_};
  const int in = in_;
  pid_ = -1;
  Outcome outcome = attend(child, "");
  ::close(in);
  return outcome;
}

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "stowage-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream stream(file(name), std::ios::binary);
  stream << text;
  return file(name);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(path_)) {
    all.push_back(entry.path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace stowage::cli_tests
