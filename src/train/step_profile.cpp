#include "train/step_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/output_file.h"
#include "core/text.h"
#include "report/chrome_trace.h"
#include "train/clock_offset.h"

namespace ridgeline::train {
namespace {

constexpr int64_t kCompute = 0, kFirstGroup = 1;  // threads of a rank's process

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Only axes of more than one rank.
std::string place_of(const mesh::Mesh& mesh) {
  std::vector<std::string> places;
  for (const spec::Axis axis : {spec::Axis::pipeline, spec::Axis::data, spec::Axis::context, spec::Axis::tensor}) {
    if (mesh.size(axis) > 1) places.push_back(mesh.group(axis).name() + " " + std::to_string(mesh.coordinate(axis)));
  }
  return places.empty() ? "" : " (" + join(places, ", ") + ")";
}

std::string name_of(const mesh::OperationRecord& record) {
  std::string name = mesh::to_string(record.operation);
  if (record.bytes > 0) name += " " + format_bytes(static_cast<double>(record.bytes));
  const bool to_peer = record.operation == mesh::Operation::send || record.operation == mesh::Operation::shift;
  if (to_peer) name += fmt::format(" to {}", record.peer);
  if (record.operation == mesh::Operation::receive) name += fmt::format(" from {}", record.peer);
  return name;
}

}  // namespace

StepProfile::StepProfile(const mesh::Mesh& mesh, const platform::Device& device, spec::StepRange steps)
    : mesh_(mesh), device_(device), steps_(steps) {}

StepProfile::~StepProfile() {
  if (active_) mesh_.observe(nullptr);
}

void StepProfile::begin(int64_t number) {
  if (!covers(number)) return;
  if (!clock_) {
    mesh_.world().barrier().wait();
    clock_.emplace(device_);
    first_begin_ = clock_->mark();
  }
  active_ = true;
  mesh_.observe(this);
  step_begin_ = last_ = clock_->mark();
}

bool StepProfile::end(int64_t number) {
  if (!covers(number)) return false;
  steps_done_.push_back({fmt::format("step {}", number), "step", step_begin_, clock_->mark(), {}});
  mesh_.observe(nullptr);
  active_ = false;
  return number == steps_.last;
}

void StepProfile::end_slice(Slice slice) {
  slice.begin = last_;
  slice.end = last_ = clock_->mark();
  usage_.push_back({last_, device_.allocated_bytes()});
  slices_.push_back(std::move(slice));
}

void StepProfile::action(const schedule::Action& action) {
  if (!active_) return;
  end_slice({.name = schedule::trace_name(action),
             .category = schedule::to_string(action.kind),
             .begin = {},
             .end = {},
             .numbers = {{"micro_batch", action.micro_batch}, {"chunk", action.chunk}}});
}

void StepProfile::phase(const char* name) {
  if (active_) end_slice({.name = name, .category = "phase", .begin = {}, .end = {}, .numbers = {}});
}

void StepProfile::started(const mesh::OperationRecord& record) {
  under_way_[{record.group, record.sequence}] = messages_.size();
  messages_.push_back({.record = record, .issued = clock_->mark(), .waited = {}, .done = {}});
}

void StepProfile::waiting(const mesh::OperationRecord& record) {
  const auto found = under_way_.find({record.group, record.sequence});
  if (found != under_way_.end()) messages_[found->second].waited = clock_->mark();
}

void StepProfile::finished(const mesh::OperationRecord& record) {
  const auto found = under_way_.find({record.group, record.sequence});
  if (found == under_way_.end()) return;  // was under way when the first step began
  messages_[found->second].done = clock_->mark();
  messages_[found->second].is_done = true;
  under_way_.erase(found);
}

std::string StepProfile::events(double offset) const {
  const int64_t process = mesh_.rank();
  const auto at = [&](const Mark& mark) { return clock_->seconds(mark) + offset; };
  report::ChromeTrace trace;
  trace.name_process(process, fmt::format("rank {}{}", process, place_of(mesh_)));
  trace.name_thread(process, kCompute, "compute");
  for (const std::vector<Slice>* slices : {&steps_done_, &slices_}) {
    for (const Slice& slice : *slices) {
      trace.slice(process, kCompute, {slice.name, slice.category, at(slice.begin), at(slice.end), slice.numbers});
    }
  }
  for (const Usage& usage : usage_) {
    trace.counter(process, "allocated bytes", at(usage.at), static_cast<double>(usage.bytes));
  }
  // Operations of one group may be on the wire together: each takes the first of its group's threads that is free.
  std::map<std::string, std::vector<std::pair<int64_t, double>>> lanes;  // by group: thread, and when it is free
  int64_t threads = kFirstGroup;
  for (const Message& message : messages_) {
    if (!message.is_done) continue;
    const std::string name = name_of(message.record);
    const double begin = at(message.issued), done = at(message.done);
    std::vector<std::pair<int64_t, double>>& of_group = lanes[message.record.group];
    auto lane = std::find_if(of_group.begin(), of_group.end(), [&](const auto& one) { return one.second <= begin; });
    if (lane == of_group.end()) {
      trace.name_thread(process, threads,
                        fmt::format("wire: {} ({} ranks)", message.record.group, message.record.group_size));
      lane = of_group.insert(of_group.end(), {threads++, 0});
    }
    lane->second = done;
    const std::vector<std::pair<std::string, int64_t>> numbers = {
        {"bytes", message.record.bytes}, {"sequence", static_cast<int64_t>(message.record.sequence)}};
    trace.slice(process, lane->first, {name, "communication", begin, done, numbers});
    trace.slice(process, kCompute, {"wait: " + name, "wait", at(message.waited), done, numbers});
  }
  return trace.events();
}

void StepProfile::write(const std::filesystem::path& path) const {
  const ClockOffset offset = clock_offset(mesh_, clock_identity(), steady_seconds);
  const auto options = at::TensorOptions().device(device_.torch());
  // Time begins with rank 0's first step.
  const at::Tensor origin = at::full({1}, clock_->seconds(first_begin_), options.dtype(at::kDouble));
  mesh_.world().broadcast(origin, 0).wait();
  const std::string mine = events(offset.seconds - origin.item<double>());
  const int64_t ranks = mesh_.world().size();
  const at::Tensor sizes = at::empty({ranks}, options.dtype(at::kLong));
  mesh_.world().all_gather(sizes, at::full({1}, static_cast<int64_t>(mine.size()), sizes.options())).wait();
  if (mesh_.rank() != 0) {
    const at::Tensor text =
        at::from_blob(const_cast<char*>(mine.data()), {static_cast<int64_t>(mine.size())}, at::kByte);
    mesh_.world().send(text.to(device_.torch()), 0).wait();
    return;
  }
  OutputFile file(path.string());
  const auto write = [&](std::string_view text) { file.write(std::as_bytes(std::span(text))); };
  write(report::kTraceBegin);
  write(mine);
  const at::Tensor host_sizes = sizes.cpu();
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const at::Tensor text = at::empty({host_sizes.const_data_ptr<int64_t>()[rank]}, options.dtype(at::kByte));
    mesh_.world().receive(text, rank).wait();
    const at::Tensor host = text.cpu();
    write(report::kTraceSeparator);
    write({static_cast<const char*>(host.const_data_ptr()), host.nbytes()});
  }
  write(report::kTraceEnd);
  file.publish();
}

}  // namespace ridgeline::train
