// The command line of one verb: its options, its help, and the frame around it that turns every
// outcome into output and an exit code. CLI11 parses; it is not seen outside command_line.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/verb_description.h"
#include "traces/result.h"

namespace stowage::cli {

using Args = std::vector<std::string>;

class CommandLine {
 public:
  // `summary` is the first line of the help, without a full stop.
  CommandLine(std::string verb, std::string summary);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What is bound must outlive the parse. Names are "-o,--output" or "--output"; `value` is the
  // word that stands for the value in the help ("FILE").
  void positional(const std::string& name, std::optional<std::string>& target, std::string help,
                  bool required = true);
  void option(const std::string& names, const std::string& value,
              std::optional<std::string>& target, std::string help, bool required = false);
  void option(const std::string& names, const std::string& value,
              std::optional<std::int64_t>& target, std::string help);
  // A file that the verb reads; one that it writes; one that it reads and, when `written` (null:
  // always), writes as well, with the folders above it. Every option whose value is a file is one
  // of these (asserted by the value's word), and run_verb checks them against each other.
  void input(const std::string& names, const std::string& value, std::optional<std::string>& target,
             std::string help, bool required = false);
  void output(const std::string& names, const std::string& value,
              std::optional<std::string>& target, std::string help, bool required = false);
  void kept(const std::string& names, const std::string& value, std::optional<std::string>& target,
            std::string help, const bool* written = nullptr);
  void positional_input(const std::string& name, std::optional<std::string>& target,
                        std::string help);
  // What was given for them, after parse().
  [[nodiscard]] CommandFiles files() const;

  // May be given several times.
  void option(const std::string& names, const std::string& value, std::vector<std::string>& target,
              std::string help);
  void flag(const std::string& names, bool& target, std::string help);
  // What shells offer as the value of an option ("--format") or an argument that was declared
  // before: words; of a file, names with these endings (else .json and .json.gz).
  void offer(const std::string& name, std::vector<std::string> words);
  void offer_endings(const std::string& name, std::vector<std::string> endings);
  // Known to the contract, not to this version: giving it is the error "not supported yet".
  void future_option(const std::string& name);

  // A paragraph below the options; example command lines, printed last.
  void detail(std::string text);
  void example(std::string command);

  [[nodiscard]] const std::string& verb() const { return verb_; }
  [[nodiscard]] VerbDescription description() const;
  [[nodiscard]] std::string help() const;

  // Fills what is bound. True: go on; false: help was asked for. Errors: usage, one line, an
  // unknown option with the nearest one.
  [[nodiscard]] Result<bool> parse(const Args& args);

  // The common options, after parse().
  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] bool quiet() const { return quiet_; }
  [[nodiscard]] const std::string& color() const { return color_; }

 private:
  struct Parser;
  struct FileOption {
    CommandFile file;  // without its path
    const std::optional<std::string>* path;
    const bool* written;
  };

  void add_positional(const std::string& name, std::optional<std::string>& target, std::string help,
                      bool required);
  void add_option(const std::string& names, const std::string& value,
                  std::optional<std::string>& target, std::string help, bool required);
  void add_names(const std::string& names, const std::string& value, std::string help,
                 bool repeats = false);
  // CLI11 takes the option that follows for a value: `-o --json` would write a file of that name,
  // and `-o=p.json` one that begins with '='.
  [[nodiscard]] Status check_values(const Args& args) const;
  [[nodiscard]] OptionDescription& described(const std::string& name);

  std::string verb_;
  std::string summary_;
  std::string usage_;
  std::vector<OptionDescription> positionals_;
  std::vector<OptionDescription> options_;
  std::vector<std::string> details_;
  std::vector<std::string> examples_;
  std::vector<std::string> long_names_;
  std::vector<std::string> short_names_ = {"-h", "-q"};
  std::vector<std::string> takes_value_ = {"--color"};  // both names of an option
  std::vector<std::string> takes_file_;
  std::vector<std::string> flags_ = {"--json", "--quiet", "--help"};
  std::vector<std::string> future_;
  std::vector<FileOption> file_options_;
  std::unique_ptr<Parser> parser_;
  bool json_ = false;
  bool quiet_ = false;
  std::string color_ = "auto";
};

// The colours that `mode` (auto, always, never) means for a stream. auto: on a terminal, unless
// NO_COLOR is set to something or TERM is "dumb".
[[nodiscard]] Paint paint_for(const std::string& mode, bool is_terminal);

// Parses, prints help or an error, runs `body` and returns the exit code. Exceptions end here: no
// memory is "environment", anything else "internal".
[[nodiscard]] int run_verb(CommandLine& line, const Args& args, std::ostream& out,
                           std::ostream& err, const std::function<Result<int>(Console&)>& body);

}  // namespace stowage::cli
