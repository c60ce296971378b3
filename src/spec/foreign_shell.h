// Bash scripts, read and never run: which commands they would start, as far as the text says.
//
// Understood are quotes, comments, line continuations, here-documents (skipped), assignments (scalars, arrays, +=,
// after export and the like), $NAME, ${NAME}, ${NAME[@]}, ${NAME:-default}, $((integer arithmetic)). Everything else
// that a shell would have to work out (positional parameters, command substitution, variables that are not set in the
// file) makes the word `unknown` in that place. Branches and loops are not followed: all their lines are read in order
// once, and a variable set there gives a note where it is used.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ridgeline::spec {

struct ShellWord {
  std::string text;
  std::string unknown = {};  // the first thing in it that the file does not hold, such as "$WORLD_SIZE"
  int line = 0;
};

using ShellCommand = std::vector<ShellWord>;

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::vector<std::string> notes;  // "train.sh:12: TP is set under a condition; the value 4 is taken"
};

// Throws InputError, with file and line, where a quote or bracket does not end, where arithmetic overflows, or where
// expansion passes all bounds.
ShellScript read_shell_script(const std::string& text, const std::string& file);

}  // namespace ridgeline::spec
