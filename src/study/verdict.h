// Verdict: why a run that did not bring its measurement failed, from how its command ended and what it said.
//
//   out_of_memory   an allocator refused (the log says by how much), or the kernel killed a process for memory
//   invalid         the command refused its input (exit code 2)
//   infrastructure  a process was killed from outside, a node or the network was lost, ranks did not meet: says nothing of the
//                   strategy, and is tried again
//   diverged        `train` stopped at a gradient that is no number
//   crashed         anything else; the log's last lines say more
#pragma once

#include <string>

#include "search/tune/trial.h"
#include "study/executor.h"

namespace ridgeline::study {

struct Verdict {
  search::Outcome outcome = search::Outcome::crashed;
  double missing_bytes = 0;  // out of memory: 0 where nobody said
  std::string message = {};       // a line
};

// `log`: the end of what the command printed. For a command that ended by itself and brought no measurement.
Verdict verdict_of(const Ending& ending, const std::string& log);

// The last `most` bytes of a file, from the start of a line on, without control characters; empty where there is none.
std::string tail_of(const std::string& path, size_t most);

// "1.50 GiB", "512 B", "2.00 GB": bytes; 0 where the text does not start so.
double parse_bytes(const std::string& text);

}  // namespace ridgeline::study
