// Runs the real command and tells what it did.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stowage::cli_tests {

struct Outcome {
  int code = -1;  // exit code; 128 + signal when it died of one
  std::string out;
  std::string err;
  std::int64_t peak_kib = 0;  // of its resident memory
};

// The path of this build's `stowage`; not in the header, so that builds share what includes it
// (ccache).
[[nodiscard]] std::string built_stowage();

struct Command {
  std::vector<std::string> args;  // after the program
  std::string program = built_stowage();
  std::string input;                     // stdin
  std::vector<std::string> environment;  // "NAME=value", added to this process's
  std::string stdout_file;               // instead of a pipe
  std::string folder;                    // working directory
  int terminal_columns = 0;              // above 0: stderr is a terminal that is so wide
  std::vector<int> closed;               // of 0, 1, 2: it is started without them
};

// Waits for the end; kills the child after 300 s.
[[nodiscard]] Outcome run(const Command& command);
[[nodiscard]] Outcome stowage(std::vector<std::string> args, const std::string& input = {});

// Starts it with its stdin open and empty, sends `signal` once `ready` holds (polled), and waits.
class Child {
 public:
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // It sleeps in a system call that waits for input: state S, and its stdin pipe is being read.
  void wait_until_blocked() const;
  // It sleeps in a write to its stdout, whose pipe is full.
  void wait_until_writing() const;
  void wait_until_running_for(int milliseconds) const;  // CPU time used
  pid_t wait_until_has_child() const;                   // which it then is
  void send(int signal) const;
  [[nodiscard]] Outcome finish();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
};

// Lines of a text; "stowage: error:" lines among them.
[[nodiscard]] int count_lines(const std::string& text);

// A folder of its own under the build's or the system's temporary folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Writes `text` to a file of that name; returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  // Names of what lies in it, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace stowage::cli_tests
