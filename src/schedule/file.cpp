#include "schedule/file.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "core/text_file.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"

namespace ridgeline::schedule {
namespace {

constexpr size_t most_file_bytes = size_t{1} << 30;
constexpr int64_t most_stages = 1'000'000;
constexpr int64_t most_chunks = 1'000;
constexpr int64_t most_pieces = 50'000'000;  // micro-batches times global stages
constexpr int64_t least_pass_bytes = 3;      // " F0"
constexpr const char* title = "ridgeline-schedule 1";

struct Compute {
  ActionKind kind;
  char letter;
};
constexpr Compute computes[] = {{ActionKind::forward, 'F'},
                                {ActionKind::backward, 'B'},
                                {ActionKind::backward_input, 'I'},
                                {ActionKind::backward_weight, 'W'}};

// Takes the words of a text line by line; everything that goes wrong names the line.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> format, Values&&... values) const {
    throw InputError("{}, line {}: {}", name_, line_, fmt::format(format, std::forward<Values>(values)...));
  }

  // The next line that is neither empty nor a comment; false at the end.
  bool next_line() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      rest_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      rest_ = rest_.substr(0, rest_.find('#'));
      skip_spaces();
      if (!rest_.empty()) return true;
    }
    rest_ = {};
    return false;
  }

  std::string_view line() const { return rest_; }
  bool at_end() const { return rest_.empty(); }

  std::string_view word() {
    const size_t end = std::min(rest_.find_first_of(" \t\r"), rest_.size());
    const std::string_view result = rest_.substr(0, end);
    rest_.remove_prefix(end);
    skip_spaces();
    return result;
  }

  // A number from low to high; takes it off the front of `text`.
  int64_t number(std::string_view& text, int64_t low, int64_t high, const char* what) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < low || value > high || text.front() == '-') {
      fail("'{}' is no {}: expected {} to {}", shown(text), what, low, high);
    }
    text.remove_prefix(end - text.data());
    return value;
  }

  // "key VALUE" on a line of its own.
  int64_t keyed(const char* key, int64_t high) {
    expect_line(key);
    std::string_view value = word();
    if (value.empty()) fail("'{}' has no value: expected 1 to {}", key, high);
    const int64_t result = number(value, 1, high, key);
    if (!value.empty() || !at_end()) fail("'{}' after the value of {}", shown(value.empty() ? rest_ : value), key);
    return result;
  }

  void expect_line(const char* key) {
    if (!next_line()) fail("the file ends where '{}' was expected", key);
    const std::string_view found = word();
    if (found != key) fail("found '{}' where '{}' was expected", shown(found), key);
  }

  static std::string shown(std::string_view text) { return shortened(std::string(text.substr(0, 100))); }

 private:
  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size()));
    while (!rest_.empty() && std::string_view(" \t\r").find(rest_.back()) != std::string_view::npos) {
      rest_.remove_suffix(1);
    }
  }

  std::string_view text_, rest_;
  const std::string& name_;
  int64_t line_ = 0;
};

Schedule read_head(Reader& reader, size_t file_bytes) {
  if (!reader.next_line() || reader.line() != title) {
    reader.fail("found '{}' where '{}' was expected: this is no schedule, or one of another version",
                Reader::shown(reader.line()), title);
  }
  const int64_t stages = reader.keyed("stages", most_stages);
  const int64_t chunks = reader.keyed("chunks", most_chunks);
  const int64_t micro_batches = reader.keyed("micro_batches", most_pieces);
  if (stages * chunks > most_pieces / micro_batches) {
    reader.fail("{} stages of {} chunks with {} micro-batches are more than {} in all", stages, chunks, micro_batches,
                most_pieces);
  }
  // Nothing is allocated for passes that the file cannot hold.
  const int64_t least = 2 * least_pass_bytes * stages * chunks * micro_batches;
  if (static_cast<int64_t>(file_bytes) < least) {
    reader.fail("{} stages of {} chunks with {} micro-batches take at least {} bytes, the file has {}", stages, chunks,
                micro_batches, least, file_bytes);
  }
  reader.expect_line("layout");
  const std::string_view layout = reader.word();
  if (!reader.at_end() || (layout != "round" && layout != "vee")) {
    reader.fail("layout '{}': expected 'round' (chunks go round the stages) or 'vee' (down the stages and back)",
                Reader::shown(layout));
  }
  if (layout == "vee" && chunks != 2) reader.fail("a vee has 2 chunks a stage, not {}", chunks);
  return empty_schedule(layout == "vee" ? vee_places(stages) : round_places(stages, chunks), micro_batches);
}

// One word, such as F12 (micro-batch 12) or F12.1 (of chunk 1).
Action read_action(const Reader& reader, std::string_view word, const Schedule& schedule) {
  for (const Compute& compute : computes) {
    if (word.front() != compute.letter) continue;
    std::string_view rest = word.substr(1);
    Action action{compute.kind, 0, 0};
    if (rest.empty()) break;
    action.micro_batch = reader.number(rest, 0, schedule.micro_batches - 1, "micro-batch");
    if (!rest.empty() && rest.front() == '.') {
      rest.remove_prefix(1);
      if (rest.empty()) break;
      action.chunk = reader.number(rest, 0, schedule.chunks_per_stage - 1, "chunk");
    }
    if (!rest.empty()) break;
    return action;
  }
  reader.fail(
      "'{}': expected F (forward), B (backward), I (backward for the input) or W (for the weights), a micro-batch "
      "and, with chunks, a chunk, such as F12 or F12.1",
      Reader::shown(word));
}

void read_stage(Reader& reader, int64_t stage, Schedule& schedule) {
  reader.expect_line("stage");
  std::string_view number = reader.word();
  if (number.empty() || number.back() != ':') reader.fail("expected 'stage {}:'", stage);
  number.remove_suffix(1);
  if (number.empty() || reader.number(number, 0, most_stages, "stage") != stage || !number.empty()) {
    reader.fail("expected 'stage {}:': stages stand in order, each once", stage);
  }
  const int64_t most = 3 * schedule.chunks_per_stage * schedule.micro_batches;
  StageWriter writer(schedule, stage);
  for (int64_t count = 0; !reader.at_end(); ++count) {
    if (count == most) reader.fail("stage {} has more than {} passes", stage, most);
    writer.compute(read_action(reader, reader.word(), schedule));
  }
}

}  // namespace

Schedule parse_schedule(const std::string& text, const std::string& name) {
  Reader reader(text, name);
  Schedule schedule = read_head(reader, text.size());
  for (int64_t stage = 0; stage < schedule.stages; ++stage) read_stage(reader, stage, schedule);
  if (reader.next_line()) reader.fail("found '{}' after the last stage", Reader::shown(reader.line()));
  try {
    check_stages(schedule);
    order_receives(schedule);
    schedule.link_capacity = least_link_capacity(schedule);
    check(schedule);
  } catch (const InternalError& error) {
    throw InputError("{}: the schedule cannot be executed: {}", name, error.what());
  }
  return schedule;
}

Schedule read_schedule(const std::string& path) {
  return parse_schedule(read_text_file(path, "a schedule", most_file_bytes), path);
}

Schedule read_schedule(const spec::Strategy& strategy) {
  Schedule schedule = read_schedule(strategy.schedule_file);
  const auto require = [&](const char* what, int64_t found, int64_t wanted, const char* change) {
    if (found == wanted) return;
    throw InputError("strategy.schedule_file = \"{}\": it has {} {}, this strategy {}; change {} or the file",
                     strategy.schedule_file, found, what, wanted, change);
  };
  require("stages", schedule.stages, strategy.pipeline, "strategy.pipeline");
  require("chunks a stage", schedule.chunks_per_stage, strategy.virtual_pipeline, "strategy.virtual_pipeline");
  require("micro-batches", schedule.micro_batches, strategy.micro_batches(),
          "strategy.global_batch or strategy.micro_batch");
  if (schedule.global_stage != chunk_places(strategy)) {
    throw InputError("strategy.schedule_file = \"{}\": its layout is '{}'; that goes with strategy.schedule = \"{}\"",
                     strategy.schedule_file, strategy.is_vee() ? "round" : "vee",
                     strategy.is_vee() ? "1f1b" : "zero_bubble_v");
  }
  return schedule;
}

std::string to_text(const Schedule& schedule) {
  const bool vee = schedule.chunks_per_stage == 2 && schedule.global_stage == vee_places(schedule.stages);
  RIDGELINE_ASSERT(schedule.has_backward);
  RIDGELINE_ASSERT(vee || schedule.global_stage == round_places(schedule.stages, schedule.chunks_per_stage));
  std::string text = fmt::format("{}\nstages {}\nchunks {}\nmicro_batches {}\nlayout {}\n", title, schedule.stages,
                                 schedule.chunks_per_stage, schedule.micro_batches, vee ? "vee" : "round");
  for (int64_t stage = 0; stage < schedule.stages; ++stage) {
    text += fmt::format("stage {}:", stage);
    for (const Action& action : schedule.actions[stage]) {
      for (const Compute& compute : computes) {
        if (compute.kind != action.kind) continue;
        text += fmt::format(" {}{}", compute.letter, action.micro_batch);
        if (schedule.chunks_per_stage > 1) text += fmt::format(".{}", action.chunk);
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace ridgeline::schedule
