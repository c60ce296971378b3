// StepProfile: what a rank did during some steps, as a trace that Perfetto opens: compute by action of the schedule and
// phase of the step, where it waited, what was on the wire in which group, and memory. All ranks lie on rank 0's clock.
//
//   StepProfile profile(mesh, device, {10, 12});
//   trainer.observe_actions(...profile.action...); trainer.observe_phases(...profile.phase...);
//   for each step: profile.begin(step); trainer.step(...); if (profile.end(step)) profile.write(path);
//
// Outside its steps it costs one comparison. On an accelerator times are those of the current stream: a wait is the
// time that the stream stood still for a message, and a message lasts from when its input was ready to the end of the
// wait.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mesh/mesh.h"
#include "platform/stream_clock.h"
#include "schedule/actions.h"
#include "spec/train.h"

namespace ridgeline::train {

class StepProfile final : public mesh::Observer {
 public:
  // Both must live longer.
  StepProfile(const mesh::Mesh& mesh, const platform::Device& device, spec::StepRange steps);
  ~StepProfile() override;

  // Before and after step `number`, from 1. Collective. end() is true after the last of its steps.
  void begin(int64_t number);
  bool end(int64_t number);
  // What began when the one before it ended is over.
  void action(const schedule::Action& action);
  void phase(const char* name);

  // One file with all ranks, written by rank 0 as ranks hand theirs over, one at a time. Collective.
  void write(const std::filesystem::path& path) const;

  void started(const mesh::OperationRecord& record) override;
  void waiting(const mesh::OperationRecord& record) override;
  void finished(const mesh::OperationRecord& record) override;

 private:
  using Mark = platform::StreamClock::Mark;
  struct Slice {
    std::string name;
    std::string category;
    Mark begin, end;
    std::vector<std::pair<std::string, int64_t>> numbers;
  };
  struct Message {
    mesh::OperationRecord record;
    Mark issued, waited, done;
    bool is_done = false;
  };
  struct Usage {
    Mark at;
    int64_t bytes = 0;
  };

  bool covers(int64_t number) const { return number >= steps_.first && number <= steps_.last; }
  void end_slice(Slice slice);
  std::string events(double offset) const;

  const mesh::Mesh& mesh_;
  const platform::Device& device_;
  spec::StepRange steps_;
  bool active_ = false;
  std::optional<platform::StreamClock> clock_;
  Mark first_begin_, step_begin_, last_;
  std::vector<Slice> steps_done_, slices_;
  std::vector<Usage> usage_;
  std::vector<Message> messages_;
  std::map<std::pair<std::string, uint64_t>, size_t> under_way_;  // by group and sequence, of messages_
};

}  // namespace ridgeline::train
