#include "cli/completion_scripts.h"

#include <functional>

namespace stowage::cli {
namespace {

using Options = std::vector<OptionDescription>;

// In single quotes of bash and zsh.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> names_of(const OptionDescription& option) {
  std::vector<std::string> names = {option.long_name};
  if (!option.short_name.empty()) names.push_back(option.short_name);
  return names;
}

std::vector<std::string> verb_names(const std::vector<VerbDescription>& verbs) {
  std::vector<std::string> names;
  for (const VerbDescription& verb : verbs) names.push_back(verb.verb);
  return names;
}

// What bash offers for a value.
std::string bash_value(const OfferedValues& offered) {
  if (offered.file) return "_stowage_files " + joined(offered.endings, " ");
  return "_stowage_words " + shell_quoted(joined(offered.words, " "));
}

constexpr const char* kBashHead =
    R"(# bash completion of stowage; `stowage completions bash` writes it.
# shellcheck shell=bash

_stowage_words() {
  local word
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <(compgen -W "$1" -- "$cur")
  # A word that goes on.
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace 2>/dev/null
  return 0
}

# Folders, and files with one of these endings; without any, all files.
_stowage_files() {
  local file ending
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do
    if [[ -d $file || $# -eq 0 ]]; then
      COMPREPLY+=("$file")
      continue
    fi
    for ending in "$@"; do
      if [[ $file == *"$ending" ]]; then
        COMPREPLY+=("$file")
        break
      fi
    done
  done < <(compgen -f -- "$cur")
}

_stowage() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
  COMPREPLY=()
  # "--option=value" is three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = && $COMP_CWORD -gt 2 ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
)";

// zsh: in the brackets of an option's text, and between the colons of a spec.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const OfferedValues& offered) {
  if (offered.file) {
    if (offered.endings.empty()) return "_files";
    return "_files -g \"*(" + joined(offered.endings, "|") + ")(-.)\"";
  }
  if (offered.words.empty()) return " ";
  std::vector<std::string> words;
  for (const std::string& word : offered.words) words.push_back(zsh_text(word));
  return "(" + joined(words, " ") + ")";
}

std::string zsh_function(const VerbDescription& verb) {
  std::string text = "_stowage_" + verb.verb + "() {\n  _arguments -s -S";
  for (const OptionDescription& option : verb.options) {
    const std::vector<std::string> names = names_of(option);
    const std::string once = option.repeats ? "*" : "(" + joined(names, " ") + ")";
    for (const std::string& name : names) {
      std::string spec = once + name;
      if (!option.value.empty()) spec += name.starts_with("--") ? "=" : "+";
      spec += "[" + zsh_text(option.help) + "]";
      if (!option.value.empty()) {
        spec += ":" + zsh_text(option.value) + ":" + zsh_value(option.offered);
      }
      text += " \\\n    " + shell_quoted(spec);
    }
  }
  int place = 1;
  for (const OptionDescription& argument : verb.arguments) {
    text += " \\\n    " + shell_quoted(std::to_string(place++) + ":" + zsh_text(argument.value) +
                                       ":" + zsh_value(argument.offered));
  }
  if (verb.options.empty()) text += " \\\n    '*:file:_files'";
  return text + "\n}\n\n";
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_value(const OfferedValues& offered) {
  if (offered.file) {
    if (offered.endings.empty()) return " -F";
    return " -a '(__fish_complete_suffix " + joined(offered.endings, " ") + ")'";
  }
  return offered.words.empty() ? "" : " -a " + fish_quoted(joined(offered.words, " "));
}

}  // namespace

std::string bash_completions(const std::vector<VerbDescription>& verbs) {
  std::string text = kBashHead;
  text += "  if (( COMP_CWORD == 1 )); then\n    _stowage_words " +
          shell_quoted(joined(verb_names(verbs), " ") + " help --help --version") +
          "\n    return\n  fi\n  case \"$verb $prev\" in\n";
  for (const VerbDescription& verb : verbs) {
    for (const OptionDescription& option : verb.options) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : names_of(option)) {
        patterns.push_back(shell_quoted(verb.verb + " " + name));
      }
      text +=
          "    " + joined(patterns, " | ") + ") " + bash_value(option.offered) + "; return ;;\n";
    }
  }
  text += "  esac\n  if [[ $cur == -* ]]; then\n    case $verb in\n";
  for (const VerbDescription& verb : verbs) {
    std::vector<std::string> names;
    for (const OptionDescription& option : verb.options) {
      for (std::string& name : names_of(option)) names.push_back(std::move(name));
    }
    text += "      " + verb.verb + ") _stowage_words " + shell_quoted(joined(names, " ")) + " ;;\n";
  }
  text += "    esac\n    return\n  fi\n  case $verb in\n    help) _stowage_words " +
          shell_quoted(joined(verb_names(verbs), " ")) + " ;;\n";
  for (const VerbDescription& verb : verbs) {
    if (verb.arguments.empty() && !verb.options.empty()) continue;
    text += "    " + verb.verb + ") " +
            (verb.arguments.empty() ? std::string("_stowage_files")
                                    : bash_value(verb.arguments.front().offered)) +
            " ;;\n";
  }
  return text + "  esac\n}\n\ncomplete -F _stowage stowage\n";
}

std::string zsh_completions(const std::vector<VerbDescription>& verbs) {
  std::string text = "#compdef stowage\n# `stowage completions zsh` writes it.\n\n";
  for (const VerbDescription& verb : verbs) text += zsh_function(verb);
  text += "_stowage() {\n  local -a verbs\n  verbs=(\n";
  for (const VerbDescription& verb : verbs) {
    text += "    " + shell_quoted(verb.verb + ":" + verb.summary) + "\n";
  }
  text += R"(  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local function=_stowage_${words[2]}
  (( $+functions[$function] )) || return 1
  shift words
  (( CURRENT-- ))
  $function
}

if [[ $funcstack[1] == _stowage ]]; then
  _stowage "$@"
else
  compdef _stowage stowage
fi
)";
  return text;
}

std::string fish_completions(const std::vector<VerbDescription>& verbs) {
  std::string text =
      "# fish completion of stowage; `stowage completions fish` writes it.\n\n"
      "complete -c stowage -f\n";
  for (const VerbDescription& verb : verbs) {
    text += "complete -c stowage -n __fish_use_subcommand -a " + verb.verb + " -d " +
            fish_quoted(verb.summary) + "\n";
  }
  for (const VerbDescription& verb : verbs) {
    const std::string begin =
        "complete -c stowage -n '__fish_seen_subcommand_from " + verb.verb + "'";
    text += "\n";
    if (verb.options.empty()) text += begin + " -F\n";
    for (const OptionDescription& argument : verb.arguments) {
      if (argument.offered == OfferedValues()) continue;
      text += begin + fish_value(argument.offered) + "\n";
      break;  // fish does not count arguments
    }
    for (const OptionDescription& option : verb.options) {
      text += begin;
      if (!option.short_name.empty()) text += " -s " + option.short_name.substr(1);
      text += " -l " + option.long_name.substr(2);
      if (!option.value.empty()) {
        text += (option.offered.file ? " -r" : " -x") + fish_value(option.offered);
      }
      text += " -d " + fish_quoted(option.help) + "\n";
    }
  }
  return text;
}

}  // namespace stowage::cli
