#include "cli/man_page.h"

#include "traces/build_info.h"

namespace stowage::cli {
namespace {

// Text as roff reads it: a minus stays one, and no line is a request.
std::string escaped(const std::string& text) {
  std::string out;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    at_begin = c == '\n';
  }
  return out;
}

std::string literal(const std::string& text) {
  return ".nf\n" + escaped(text) + "\n.fi\n";
}

std::string option_text(const OptionDescription& option) {
  std::string text = ".TP\n";
  if (!option.short_name.empty()) text += "\\fB" + escaped(option.short_name) + "\\fR, ";
  text += "\\fB" + escaped(option.long_name) + "\\fR";
  if (!option.value.empty()) text += " \\fI" + escaped(option.value) + "\\fR";
  return text + "\n" + escaped(option.help) + "\n";
}

std::string verb_text(const VerbDescription& verb) {
  std::string text = ".SS " + escaped(verb.verb) + "\n";
  if (!verb.options.empty()) text += ".B " + escaped(verb.usage) + "\n.PP\n";
  text += escaped(verb.summary) + ".\n";
  for (const OptionDescription& argument : verb.arguments) {
    text += ".TP\n\\fI" + escaped(argument.value) + "\\fR\n" + escaped(argument.help) + "\n";
  }
  for (const OptionDescription& option : verb.options) text += option_text(option);
  for (const std::string& detail : verb.details) text += ".PP\n" + literal(detail);
  if (verb.examples.empty()) return text;
  text += ".PP\nExamples:\n.PP\n";
  std::string examples;
  for (const std::string& example : verb.examples) {
    examples += (examples.empty() ? "    " : "\n    ") + example;
  }
  return text + literal(examples);
}

constexpr const char* kCodes[][2] = {
    {"0", "done"},
    {"1",
     "asked for and not met: infeasible, verification failed, a plan over its budget, a step "
     "that needs more than its baseline"},
    {"2", "the command line is wrong"},
    {"3", "a file or a model that cannot be used"},
    {"4", "environment: not built, no GPU, no space, stdout closed"},
    {"70", "a bug in Stowage"},
    {"130", "interrupted; nothing is half-written"},
};

}  // namespace

std::string man_page(const std::vector<VerbDescription>& verbs) {
  std::string text = ".TH STOWAGE 1 \"2026-11-27\" \"stowage " + escaped(std::string(kVersion)) +
                     "\" \"User Commands\"\n.SH NAME\n"
                     "stowage \\- decides where every tensor of a PyTorch training step lives\n"
                     ".SH SYNOPSIS\n.B stowage\n.I VERB\n.RI [ ARGS ]\n"
                     ".SH DESCRIPTION\n"
                     "Records one training step, finds a plan for a memory budget, and applies it "
                     "to the real model.\n.PP\nIn three commands:\n.PP\n";
  text += literal(
      "    stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 --batch 4 -o t.json.gz\n"
      "    stowage plan t.json.gz --budget 60% -o p.json\n"
      "    stowage verify --plan p.json");
  text +=
      ".PP\nSizes are 24GiB, 24GB, 512MiB, bytes, or 60% of the resident peak; times 1.5ms, 2s. "
      "A file that ends in .gz is compressed; \"\\-\" is stdin or stdout.\n.SH VERBS\n";
  for (const VerbDescription& verb : verbs) text += verb_text(verb);
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kCodes) {
    text += std::string(".TP\n.B ") + code + "\n" + escaped(meaning) + "\n";
  }
  return text +
         ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nWhen it is set to something, output is not coloured "
         "unless \\fB\\-\\-color always\\fR asks for it.\n.TP\n.B PATH\nWhere stowage\\-torch is "
         "looked for that is neither beside stowage nor in ../libexec/stowage, and python3 for "
         "models of Python.\n";
}

}  // namespace stowage::cli
