#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/signals.h"
#include "cli/verb_description_json.h"
#include "report/answers/text_table.h"
#include "traces/nearest.h"

namespace stowage::cli {
namespace {

constexpr const char* kColorModes[] = {"auto", "always", "never"};
const std::vector<std::string> kEndings = {".json", ".json.gz"};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(" .") + 1);
  return text;
}

std::string help_column(const OptionDescription& option) {
  return (option.short_name.empty() ? "    " : option.short_name + ", ") + option.long_name +
         (option.value.empty() ? "" : ' ' + option.value);
}

// What every verb has.
std::vector<OptionDescription> common_options() {
  OfferedValues modes{.words = {std::begin(kColorModes), std::end(kColorModes)}};
  return {{.long_name = "--json", .help = "print one JSON object"},
          {.short_name = "-q",
           .long_name = "--quiet",
           .help = "no progress, remarks or warnings on stderr"},
          {.long_name = "--color",
           .value = "MODE",
           .help = "auto, always or never (auto respects NO_COLOR)",
           .offered = std::move(modes)},
          {.short_name = "-h", .long_name = "--help", .help = "this text"}};
}

// "-o,--output" -> "--output"
std::string long_name(const std::string& names) {
  const auto comma = names.find(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

// In the words of a user; CLI11 speaks of "1 required TEXT".
std::string mismatch_text(const CLI::ArgumentMismatch& error) {
  const std::string what = error.what();
  const std::string name = what.substr(0, what.find(':'));
  const bool repeated = what.find("At Most") != std::string::npos;
  return name + (repeated ? " is given more than once" : " needs a value");
}

std::int64_t whole_number(const std::string& name, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc::result_out_of_range && stop == end) {
    throw CLI::ValidationError(name, "'" + text + "' is too large");
  }
  if (code != std::errc() || stop != end) {
    throw CLI::ValidationError(name, "'" + text + "' is not a whole number");
  }
  return value;
}

// The words by which help tells that a value is a file.
bool is_file_word(const std::string& value) {
  constexpr std::string_view kWords[] = {"FILE", "F", "OUT", "P", "T", "V", "A"};
  return std::find(std::begin(kWords), std::end(kWords), value) != std::end(kWords);
}

// "--out=x" -> "--out"
std::string option_word(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

}  // namespace

struct CommandLine::Parser {
  CLI::App app;
};

CommandLine::CommandLine(std::string verb, std::string summary)
    : verb_(std::move(verb)), summary_(std::move(summary)), parser_(std::make_unique<Parser>()) {
  CLI::App& app = parser_->app;
  app.name("stowage " + verb_);
  app.allow_extras();
  app.set_help_flag("-h,--help");
  app.add_flag("--json", json_);
  app.add_flag("-q,--quiet", quiet_);
  app.add_option("--color", color_)->take_last();
  long_names_ = {"--help", "--json", "--quiet", "--color"};
}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string& name, std::optional<std::string>& target,
                             std::string help, bool required) {
  STOWAGE_ASSERT(!is_file_word(name));
  add_positional(name, target, std::move(help), required);
}

void CommandLine::add_positional(const std::string& name, std::optional<std::string>& target,
                                 std::string help, bool required) {
  parser_->app.add_option(name, target)->required(required);
  usage_ += required ? " " + name : " [" + name + "]";
  positionals_.push_back({.long_name = name, .value = name, .help = std::move(help)});
}

void CommandLine::option(const std::string& names, const std::string& value,
                         std::optional<std::string>& target, std::string help, bool required) {
  STOWAGE_ASSERT(!is_file_word(value));
  add_option(names, value, target, std::move(help), required);
}

void CommandLine::positional_input(const std::string& name, std::optional<std::string>& target,
                                   std::string help) {
  file_options_.push_back({{.name = name, .read = true}, &target, nullptr});
  add_positional(name, target, std::move(help), true);
  positionals_.back().offered = {.file = true, .endings = kEndings};
}

void CommandLine::input(const std::string& names, const std::string& value,
                        std::optional<std::string>& target, std::string help, bool required) {
  file_options_.push_back({{.name = long_name(names), .read = true}, &target, nullptr});
  add_option(names, value, target, std::move(help), required);
}

void CommandLine::output(const std::string& names, const std::string& value,
                         std::optional<std::string>& target, std::string help, bool required) {
  file_options_.push_back({{.name = long_name(names), .written = true}, &target, nullptr});
  add_option(names, value, target, std::move(help), required);
}

void CommandLine::kept(const std::string& names, const std::string& value,
                       std::optional<std::string>& target, std::string help, const bool* written) {
  file_options_.push_back(
      {{.name = long_name(names), .read = true, .written = true, .kept = true}, &target, written});
  file_options_.back().file.makes_folders = written != nullptr;
  add_option(names, value, target, std::move(help), false);
}

CommandFiles CommandLine::files() const {
  CommandFiles files;
  for (const FileOption& option : file_options_) {
    if (!*option.path) continue;
    CommandFile file = option.file;
    file.path = **option.path;
    if (option.written != nullptr) file.written = *option.written;
    files.add(std::move(file));
  }
  return files;
}

void CommandLine::add_option(const std::string& names, const std::string& value,
                             std::optional<std::string>& target, std::string help, bool required) {
  parser_->app.add_option(names, target)->required(required);
  add_names(names, value, std::move(help));
  if (required) usage_ += " " + long_name(names) + " " + value;
}

void CommandLine::add_names(const std::string& names, const std::string& value, std::string help,
                            bool repeats) {
  const std::string whole = long_name(names);
  OptionDescription option{
      .long_name = whole, .value = value, .help = std::move(help), .repeats = repeats};
  if (whole != names) option.short_name = names.substr(0, names.find(','));
  if (is_file_word(value)) option.offered = {.file = true, .endings = kEndings};
  options_.push_back(std::move(option));
  long_names_.push_back(whole);
  std::vector<std::string> both = {whole};
  if (whole != names) {
    both.push_back(names.substr(0, names.find(',')));
    short_names_.push_back(both.back());
  }
  if (!value.empty()) takes_value_.insert(takes_value_.end(), both.begin(), both.end());
  if (is_file_word(value)) takes_file_.insert(takes_file_.end(), both.begin(), both.end());
}

void CommandLine::option(const std::string& names, const std::string& value,
                         std::optional<std::int64_t>& target, std::string help) {
  parser_->app.add_option_function<std::string>(
      names, [&target, name = long_name(names)](const std::string& text) {
        target = whole_number(name, text);
      });
  add_names(names, value, std::move(help));
}

void CommandLine::option(const std::string& names, const std::string& value,
                         std::vector<std::string>& target, std::string help) {
  parser_->app.add_option(names, target)->allow_extra_args(false);
  add_names(names, value, std::move(help), true);
}

void CommandLine::flag(const std::string& names, bool& target, std::string help) {
  parser_->app.add_flag(names, target);
  add_names(names, "", std::move(help));
  flags_.push_back(long_name(names));
}

OptionDescription& CommandLine::described(const std::string& name) {
  const auto is_it = [&](const OptionDescription& option) { return option.long_name == name; };
  const auto found = std::find_if(options_.begin(), options_.end(), is_it);
  if (found != options_.end()) return *found;
  const auto argument = std::find_if(positionals_.begin(), positionals_.end(), is_it);
  STOWAGE_ASSERT(argument != positionals_.end());
  return *argument;
}

void CommandLine::offer(const std::string& name, std::vector<std::string> words) {
  described(name).offered.words = std::move(words);
}

void CommandLine::offer_endings(const std::string& name, std::vector<std::string> endings) {
  STOWAGE_ASSERT(described(name).offered.file);
  described(name).offered.endings = std::move(endings);
}

void CommandLine::future_option(const std::string& name) {
  future_.push_back(name);
}
void CommandLine::detail(std::string text) {
  details_.push_back(std::move(text));
}
void CommandLine::example(std::string command) {
  examples_.push_back(std::move(command));
}

VerbDescription CommandLine::description() const {
  VerbDescription all{.verb = verb_,
                      .usage = "stowage " + verb_ + usage_ + " [options]",
                      .summary = summary_,
                      .arguments = positionals_,
                      .options = options_,
                      .details = details_,
                      .examples = examples_};
  for (OptionDescription& option : common_options()) all.options.push_back(std::move(option));
  return all;
}

std::string CommandLine::help() const {
  const VerbDescription all = description();
  std::string text = "usage: " + all.usage + "\n\n" + summary_ + ".\n";
  report::TextTable table;
  table.column("");
  table.column("");
  for (const auto& argument : all.arguments) table.row({argument.long_name, argument.help});
  for (const auto& option : all.options) table.row({help_column(option), option.help});
  text += "\n" + table.text(2);
  for (const auto& paragraph : details_) text += "\n" + paragraph + "\n";
  if (!examples_.empty()) {
    text += examples_.size() == 1 ? "\nexample:\n" : "\nexamples:\n";
    for (const auto& command : examples_) text += "  " + command + "\n";
  }
  return text;
}

Status CommandLine::check_values(const Args& args) const {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") break;
    // CLI11 takes the '=' behind a short name for a part of the value: a file "=p.json".
    const std::string word = option_word(args[i]);
    if (word != args[i] && !word.starts_with("--") &&
        std::find(takes_value_.begin(), takes_value_.end(), word) != takes_value_.end()) {
      return usage_error(args[i] + " is not allowed: a short option has its value behind a space",
                         word + " " + args[i].substr(word.size() + 1));
    }
    if (i + 1 == args.size() ||
        std::find(takes_value_.begin(), takes_value_.end(), args[i]) == takes_value_.end()) {
      continue;
    }
    const std::string& value = args[i + 1];
    const bool is_short =
        std::find(short_names_.begin(), short_names_.end(), value) != short_names_.end();
    if (!is_short && !value.starts_with("--")) {
      ++i;
      continue;
    }
    const bool is_file =
        std::find(takes_file_.begin(), takes_file_.end(), args[i]) != takes_file_.end();
    return usage_error(
        args[i] + " needs a value, and " + value + " is an option",
        is_file ? "a file of that name is written ./" + value : "see stowage " + verb_ + " --help");
  }
  return Unit{};
}

Result<bool> CommandLine::parse(const Args& args) {
  const std::string see = "see stowage " + verb_ + " --help";
  for (const auto& argument : args) {
    const std::string word = option_word(argument);
    if (std::find(future_.begin(), future_.end(), word) != future_.end()) {
      return not_supported_yet(word);
    }
    // CLI11 takes some values and drops others.
    if (word != argument && std::find(flags_.begin(), flags_.end(), word) != flags_.end()) {
      return usage_error(word + " takes no value", see);
    }
  }
  if (const Status values = check_values(args); !values) return values.error();
  CLI::App& app = parser_->app;
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // what CLI11 asks for
  std::optional<Error> error;
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ArgumentMismatch& e) {
    error = usage_error(one_line(mismatch_text(e)), see);
  } catch (const CLI::Error& e) {
    error = usage_error(one_line(e.what()), see);
  }
  // CLI11 leaves the "--" that ends the options among them.
  std::vector<std::string> extras = app.remaining();
  const auto end_of_options = std::find(extras.begin(), extras.end(), "--");
  // An unknown option explains more than what is missing because of it.
  for (auto at = extras.begin(); at != end_of_options; ++at) {
    const std::string& extra = *at;
    if (extra.size() < 2 || extra[0] != '-') continue;
    const std::string near = nearest(option_word(extra), long_names_);
    return usage_error("unknown option '" + option_word(extra) + "'",
                       near.empty() ? see : "did you mean " + near + "?");
  }
  if (error) return *error;
  if (end_of_options != extras.end()) extras.erase(end_of_options);
  if (!extras.empty()) return usage_error("unexpected argument '" + extras.front() + "'", see);
  if (std::find(std::begin(kColorModes), std::end(kColorModes), color_) == std::end(kColorModes)) {
    const std::string mode = color_;
    color_ = "auto";
    return usage_error("--color: unknown mode '" + mode + "'", "auto, always or never");
  }
  return true;
}

namespace {

// An older file where the answer should have gone is easily taken for it.
void say_what_stays(const Console& console) {
  for (const std::string& path : console.files.not_written()) {
    console.note(path + " is as it was before: nothing was written to it");
  }
}

}  // namespace

Paint paint_for(const std::string& mode, bool is_terminal) {
  if (mode == "always") return Paint(true);
  if (mode == "never" || !is_terminal) return Paint(false);
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = (no_color != nullptr && *no_color != '\0') ||
                     (term != nullptr && std::string_view(term) == "dumb");
  return Paint(!plain);
}

int run_verb(CommandLine& line, const Args& args, std::ostream& out, std::ostream& err,
             const std::function<Result<int>(Console&)>& body) {
  // Before parsing has told: an error in the command line itself is reported as JSON, too.
  Console console(out, err);
  console.json = std::find(args.begin(), args.end(), "--json") != args.end();
  console.paint_err = paint_for("auto", terminal().err_is_terminal);
  set_last_words(console.json);
  if (args == Args{kDescribe}) {
    out << verb_description_json(line.description());
    return 0;
  }
  try {
    const Result<bool> parsed = line.parse(args);
    if (!parsed) {
      const int code = report_error(console, parsed.error());
      // As far as it was read: an output that cannot be looked at stays unsaid.
      console.quiet = line.quiet();
      console.files = line.files();
      if (console.files.check()) say_what_stays(console);
      return code;
    }
    if (!parsed.value()) {
      out << line.help();
      return 0;
    }
    console.json = line.json();
    console.quiet = line.quiet();
    console.paint = paint_for(line.color(), terminal().out_is_terminal);
    console.paint_err = paint_for(line.color(), terminal().err_is_terminal);
    console.files = line.files();
    if (const Status files = console.files.check(); !files) {
      return report_error(console, files.error());
    }
    const Result<int> result = body(console);
    const int code = result ? result.value() : report_error(console, result.error());
    if (code != 0) say_what_stays(console);
    return code;
  } catch (const std::bad_alloc&) {
    return report_error(console, Error{ErrorCode::environment, "not enough memory", "", "", ""});
  } catch (const std::exception& e) {
    return report_error(console, Error{ErrorCode::internal, "internal error: " + one_line(e.what()),
                                       "", "", "please report it with the command line"});
  }
}

}  // namespace stowage::cli
